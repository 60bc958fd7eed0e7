import BusProtocol
import CameraBusTesting
import JSON
import Testing

/// Envelopes, requests, parameters and responses.
@Suite struct RequestVectorTests {
    @Test(arguments: Vectors.cases("envelopes"))
    func envelope(_ vector: VectorCase) throws {
        let (envelope, body) = RequestEnvelope.split(vector.frames, size: \.count)
        #expect(JSONValue(envelope.count) == vector.expect["envelope"])
        #expect(JSONValue(body.count) == vector.expect["body"])
        #expect(Array(envelope) + body == vector.frames)
        #expect(JSONValue(RequestEnvelope.isAcceptable(envelope, size: \.count)) == vector.expect["answered"])
        #expect((RequestEnvelope.isAcceptable(envelope, size: \.count) && body.count == 1) == vector.isValid)
    }

    @Test(arguments: Vectors.cases("requests"))
    func request(_ vector: VectorCase) throws {
        let result = try vector.frame().withUnsafeBytes { Request.parse($0) }
        switch result {
        case .success(let request):
            try #require(vector.isValid)
            #expect(request.id == vector.expect["id"])
            #expect(request.method == vector.expect["method"]?.string)
            #expect(request.params == vector.expect["params"])
            #expect(request.key == vector.expect["key"]?.string)
            #expect(request.onBehalfOf?.name == vector.expect["for"]?["name"]?.string)
            #expect(request.onBehalfOf?.role.rawValue == vector.expect["for"]?["role"]?.string)
            #expect(request.serialized.withUnsafeBytes { Request.parse($0) } == .success(request))
        case .failure(let failure):
            #expect(!vector.isValid, "\(failure.error.message)")
            #expect(failure.id == vector.expect["id"])
            #expect(isContained(errorObject(vector.expect["error"]), in: failure.error.json))
        }
    }

    @Test(arguments: Vectors.cases("params"))
    func params(_ vector: VectorCase) throws {
        let method = try #require(MethodTable[vector.json["method"]?.string ?? ""])
        let error = method.params.validate(try #require(vector.json["params"]))
        #expect((error == nil) == vector.isValid, "\(error?.message ?? "taken")")
        guard let error else { return }
        #expect(error.reason == .invalidParams)
        #expect(isContained(vector.expect["data"] ?? .null, in: .object(error.data)), "\(error.message)")
    }

    @Test(arguments: Vectors.cases("responses"))
    func response(_ vector: VectorCase) throws {
        let frame = try vector.frame()
        let parsed = Result { () throws(BusError) in try Reply(parsing: frame) }
        guard case .success(let reply) = parsed else {
            #expect(!vector.isValid)
            return
        }
        try #require(vector.isValid)
        #expect(reply.id == vector.expect["id"])
        switch reply.result {
        case .success(let result): #expect(result == vector.expect["result"])
        case .failure(let error):
            let expected = try #require(vector.expect["error"])
            let word = error.data["reason"]?.string ?? error.reason.rawValue
            #expect(word == expected["reason"]?.string)
            #expect(error.message == expected["message"]?.string)
            #expect(error.data.filter { $0.key != "reason" } == expected["data"]?.object)
        }
    }

    // The vectors have the reason beside the code, the wire has it within data.
    private func errorObject(_ expected: JSONValue?) -> JSONValue {
        var data = expected?["data"]?.object ?? [:]
        data["reason"] = expected?["reason"]
        return .members(["code": expected?["code"], "data": .object(data)])
    }
}
