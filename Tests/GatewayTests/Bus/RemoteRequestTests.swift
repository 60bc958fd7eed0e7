import BusProtocol
import JSON
import Testing

@testable import Gateway

/// What is asked in whose name, and what is answered.
@Suite struct RemoteRequestTests {
    private let principal = Request.Principal(name: "laptop", role: .view)

    @Test func `the gateway says who asks`() throws {
        let asked = Request(id: 7, method: "device.list", params: ["media": "video"], key: "k")
        let passed = try RemoteRequest.checked(asked, of: principal)
        #expect(passed.onBehalfOf == Request.Principal(name: "laptop", role: .view))
        #expect(passed.id == 7 && passed.method == asked.method && passed.params == asked.params && passed.key == "k")
        let json = try JSONValue(parsing: passed.serialized)
        #expect(json["for"] == ["name": "laptop", "role": "view"])
    }

    @Test func `whose answers may bring frames is known before they are asked`() {
        let definitions = Schema.definitions.filter { name, schema in
            String(decoding: schema.json.serialized, as: UTF8.self).contains("\"attachments\"")
        }
        let found = MethodTable.all.filter { method in
            let text = String(decoding: method.result.json.serialized, as: UTF8.self)
            return text.contains("\"attachments\"") || definitions.keys.contains { text.contains("/\($0)\"") }
        }
        #expect(Set(found.map(\.name)) == RemoteRequest.attaching)
        func mayBring(_ params: JSONValue) -> Bool {
            RemoteRequest.mayBringFrames(Request(id: 1, method: "photo.capture", params: params))
        }
        #expect(mayBring([:]) && mayBring(["deliver": ["library", "reply"]]) && !mayBring(["deliver": ["library"]]))
    }

    @Test func `a client that says so itself is refused`() {
        let asked = Request(
            id: 7, method: "bus.ping", onBehalfOf: Request.Principal(name: "laptop", role: .admin))
        #expect { try RemoteRequest.checked(asked, of: principal) } throws: { error in
            (error as? BusError)?.reason == .unauthorized
        }
    }
}

@Suite struct HelloReplyTests {
    @Test func `the sockets are the gateway's, and what needs the same machine is not named`() throws {
        let result: JSONValue = [
            "server": "CameraBus", "features": ["keys", "rings", "sources", "sound"],
            "endpoints": [
                "command": "/run/a", "events": "/run/b", "media": ["cam0": "/run/c", "mic0": "/run/d"], "other": "x",
            ],
        ]
        let address = try #require(TCPAddress("tcp://*:7350"))
        let bytes = HelloReply.rewritten(Response.success(id: 1, result: result), address)
        let reply = try JSONValue(parsing: bytes)
        #expect(reply["id"] == 1)
        #expect(reply["result"]?["features"] == ["keys", "sound"])
        let endpoints = reply["result"]?["endpoints"]
        #expect(endpoints?["command"] == "tcp://*:7350" && endpoints?["events"] == "tcp://*:7351")
        #expect(endpoints?["media"] == ["cam0": "tcp://*:7352", "mic0": "tcp://*:7352"])
    }

    @Test func `a refusal stays as it is`() throws {
        let address = try #require(TCPAddress("tcp://*:7350"))
        let refusal = Response.failure(id: 1, error: BusError(.versionUnsupported, "no", ["supported": [1]]))
        #expect(HelloReply.rewritten(refusal, address) == refusal)
        #expect(HelloReply.rewritten([1, 2], address) == [1, 2])
    }
}
