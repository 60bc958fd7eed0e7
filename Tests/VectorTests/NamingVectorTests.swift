import BusProtocol
import CameraBusTesting
import JSON
import Testing

/// Renditions, device ids, topics, addresses and paths: what names something on the wire.
@Suite struct NamingVectorTests {
    @Test(arguments: Vectors.cases("renditions"))
    func rendition(_ vector: VectorCase) throws {
        let text = String(decoding: try vector.frame(), as: UTF8.self)
        let result = Result { () throws(BusError) in try Rendition(parsing: text) }
        switch result {
        case .success(let rendition):
            try #require(vector.isValid)
            #expect(rendition.description == vector.expect["canonical"]?.string)
            #expect(rendition == (try Rendition(parsing: rendition.description)))
            #expect(rendition.encoding.rawValue == vector.expect["encoding"]?.string)
            #expect(rendition.width == vector.expect["width"]?.integer.map(Int.init))
            #expect(rendition.height == vector.expect["height"]?.integer.map(Int.init))
            #expect(rendition.rateMillionths.map { Double($0) / 1e6 } == vector.expect["rate"]?.double)
            #expect(rendition.videoRotationAngle == vector.expect["rotate"]?.integer.map(Int.init) ?? 0)
            #expect(rendition.isVideoMirrored == vector.expect["mirror"]?.bool ?? false)
            #expect(rendition.crop?.description == vector.expect["crop"]?.string)
            #expect(rendition.isFitted == vector.expect["fit"]?.bool ?? false)
            #expect(rendition.quality == vector.expect["quality"]?.integer.map(Int.init))
        case .failure(let error):
            #expect(!vector.isValid, "\(error.message)")
            #expect(error.reason.rawValue == vector.expect["reason"]?.string)
            #expect(isContained(vector.expect["data"] ?? .null, in: .object(error.data)))
        }
    }

    @Test(arguments: Vectors.cases("frame-rates"))
    func frameRate(_ vector: VectorCase) throws {
        let value = try #require(vector.json["rate"])
        let result = Result { () throws(BusError) in try FrameRate(json: value, path: "frameRate") }
        switch result {
        case .success(let rate):
            try #require(vector.isValid)
            #expect("\(rate.frames)/\(rate.seconds)" == vector.expect["fraction"]?.string)
            #expect(rate.json == vector.expect["wire"])
            #expect(try FrameRate(json: rate.json, path: "") == rate)
        case .failure(let error):
            #expect(!vector.isValid, "\(error.message)")
            #expect(error.reason == .invalidParams && error.data["path"] == "frameRate")
            for name in vector.expect["names"]?.array ?? [] {
                #expect(error.message.contains(" \(name.string ?? "") for"), "\(error.message)")
            }
        }
    }

    @Test(arguments: Vectors.cases("device-ids"))
    func deviceID(_ vector: VectorCase) throws {
        #expect(DeviceID.isValid(utf8: try vector.frame()) == vector.isValid)
    }

    @Test(arguments: Vectors.cases("topics"))
    func topic(_ vector: VectorCase) throws {
        let bytes = try vector.frame()
        guard let topic = Topic.parse(bytes) else {
            #expect(!vector.isValid)
            return
        }
        try #require(vector.isValid)
        #expect(topic.json == vector.expect)
        #expect(topic.bytes == bytes)
        #expect((MediaTopic(parsing: bytes) != nil) == (vector.expect["rendition"] != nil))
    }

    @Test(arguments: Vectors.cases("peer-addresses"))
    func peerAddress(_ vector: VectorCase) throws {
        let address = PeerAddress(zmqPeerAddress: String(decoding: try vector.frame(), as: UTF8.self))
        #expect((address != nil) == vector.isValid)
        guard let address else { return }
        #expect(
            ["uid": JSONValue(address.uid), "gid": JSONValue(address.gid), "pid": JSONValue(address.pid)]
                == vector.expect)
    }

    @Test(arguments: Vectors.cases("runtime-directories"))
    func runtimeDirectory(_ vector: VectorCase) throws {
        let flag = vector.json["flag"]?.string
        let environment = (vector.json["environment"]?.object ?? [:]).compactMapValues(\.string)
        let uid = try #require(vector.json["uid"]?.integer.flatMap { UInt32(exactly: $0) })
        let result = Result { () throws(RuntimeDirectory.PathError) in
            vector.json["role"] == "server"
                ? [try RuntimeDirectory.server(flag: flag, environment: environment, uid: uid)]
                : try RuntimeDirectory.clientCandidates(flag: flag, environment: environment, uid: uid)
        }
        switch result {
        case .success(let directories):
            try #require(vector.isValid)
            #expect(JSONValue(directories.map(\.path)) == vector.expect["directories"])
            guard let sockets = vector.expect["sockets"], let directory = directories.first else { return }
            #expect(sockets["command"]?.string == directory.commandSocket)
            #expect(sockets["events"]?.string == directory.eventsSocket)
            #expect(sockets["media"]?.string == directory.mediaSocket("cam0"))
        case .failure(let error): #expect(!vector.isValid, "\(error)")
        }
    }
}

extension Topic {
    // As topics.json writes its parts.
    fileprivate var json: JSONValue {
        switch self {
        case .media(let topic):
            [
                "kind": .string(topic.kind.rawValue), "device": .string(topic.device),
                "rendition": .string(topic.renditionText),
            ]
        case .state(.bus): ["kind": "state", "what": "bus"]
        case .state(.device(let id)): ["kind": "state", "what": "device", "id": .string(id)]
        case .state(.lock(let id)): ["kind": "state", "what": "lock", "id": .string(id)]
        case .state(.rig(let name)): ["kind": "state", "what": "rig", "id": .string(name)]
        case .state(.session(let id)): ["kind": "state", "what": "session", "id": .string(id)]
        case .state(.movie(let id)): ["kind": "state", "what": "movie", "id": .string(id)]
        case .state(.take(let id)): ["kind": "state", "what": "take", "id": .string(id)]
        case .state(.authorization(let uid)): ["kind": "state", "what": "authorization", "id": .string(uid)]
        case .event(.bus): ["kind": "event", "what": "bus"]
        case .event(.device(let id)): ["kind": "event", "what": "device", "id": .string(id)]
        case .event(.lock(let id)): ["kind": "event", "what": "lock", "id": .string(id)]
        case .event(.session(let id)): ["kind": "event", "what": "session", "id": .string(id)]
        case .event(.movie(let id)): ["kind": "event", "what": "movie", "id": .string(id)]
        case .event(.take(let id)): ["kind": "event", "what": "take", "id": .string(id)]
        case .event(.photo(let id)): ["kind": "event", "what": "photo", "id": .string(id)]
        case .event(.authorization(let uid)): ["kind": "event", "what": "authorization", "id": .string(uid)]
        case .heartbeat: ["kind": "heartbeat"]
        case .level(let device): ["kind": "level", "device": .string(device)]
        case .welcome: ["kind": "welcome"]
        case .ack(let nonce): ["kind": "ack", "nonce": .string(nonce)]
        }
    }
}
