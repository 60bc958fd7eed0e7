import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests.Permission {
    @Test func `a request waits for its answer, and is published to administrators with its reason`() async throws {
        let bus = try await bus()
        let asking = try bus.start(
            "camerabus", ["ask", "video", "--reason", "measure the belt", "--wait", "60"], as: Self.user)
        try await isAsked(bus, Self.user)
        let request = try #require(try call(bus, "authorization.list")["requests"]?[0])
        #expect(request["reason"] == "measure the belt" && request["media"] == "video")
        #expect(request["uid"]?.integer == Int64(Self.user.uid))
        #expect(request["pid"]?.integer == Int64(asking.process.pid))
        // What is asked for with which words is for administrators.
        let state = try call(bus, "bus.snapshot", ["prefix": "state/authorization/"]).description
        #expect(!state.contains("measure"))
        let list = try await bus.run("camerabus", ["permissions"])
        #expect(list.standardOutput.contains("measure the belt"), "\(list)")
        try await allow(bus, Self.user)
        let result = try await asking.end()
        #expect(result.status == 0 && result.standardOutput == "authorized\n", "\(result)")
        try await deny(bus, Self.user)
        let again = try await bus.run(
            "camerabus", ["ask", "video", "--reason", "again", "--wait", "60"], as: Self.user)
        #expect(again.status == 1 && again.standardOutput == "denied\n", "\(again)")
        #expect(try call(bus, "authorization.list")["requests"] == [])
        let reset = try await bus.run("camerabus", ["permissions", "--reset", "\(Self.user.uid)"])
        #expect(reset.status == 0, "\(reset)")
        let later = try await bus.run("camerabus", ["ask", "video", "--reason", "again"], as: Self.user)
        #expect(later.status == 4 && later.standardOutput == "notDetermined\n", "\(later)")
        try await bus.stop()
    }

    @Test func `a request without a reason is none, and one that waits can be given up`() async throws {
        let bus = try await bus()
        for reason in ["", "  ", "two\\nlines", "\\u001b[2J"] {
            let params = "{\"media\":\"video\",\"reason\":\"\(reason)\"}"
            let result = try await bus.run(
                "camerabus", ["call", "authorization.request", params], as: Self.user)
            #expect(result.status == 1 && result.standardError.contains("invalidParams"), "\(result)")
        }
        let script = """
            import sys
            from camerabus import Client, CaptureError
            client = Client()
            import threading
            def wait():
                try:
                    Client().call("authorization.request", {"media": "video", "reason": "x", "wait": 60000}, 70, key="k1")
                except CaptureError as error:
                    print(error.reason)
            thread = threading.Thread(target=wait)
            thread.start()
            while not client.call("bus.cancel", {"key": "k1"})["cancelled"]:
                pass
            thread.join()
            """
        let result = try await bus.run(
            OtherUser.python, ["-c", script], as: Self.user, environment: ["PYTHONPATH": Programs.pythonPath])
        #expect(result.standardOutput == "cancelled\n", "\(result)")
        #expect(try call(bus, "authorization.list")["requests"] == [])
        try await bus.stop()
    }

    @Test func `a wait for permission ends with its process`() async throws {
        let bus = try await bus()
        // As many as a user may have, and one more.
        let script = """
            import json, sys
            import zmq
            socket = zmq.Context().socket(zmq.DEALER)
            socket.connect(f"ipc://{sys.argv[1]}")
            for number in range(17):
                params = {"media": "video", "reason": "x", "wait": 3600000}
                request = {"jsonrpc": "2.0", "id": number, "method": "authorization.request", "params": params}
                socket.send_multipart([b"", json.dumps(request).encode()])
            print(json.loads(socket.recv_multipart()[-1])["error"]["data"]["limit"], flush=True)
            socket.recv_multipart()
            """
        let waiting = try bus.start(
            OtherUser.python, ["-c", script, bus.directory.commandSocket], as: Self.user)
        try await eventually { waiting.standardOutput == "authorizationWaiters\n" }
        waiting.process.send(SIGKILL)
        _ = try await waiting.end()
        let next = try await bus.run(
            "camerabus", ["ask", "video", "--reason", "again", "--wait", "1"], as: Self.user)
        #expect(next.status == 4 && next.standardOutput == "notDetermined\n", "\(next)")
        // What was asked stays.
        #expect(try call(bus, "authorization.list")["requests"]?.array?.count == 1)
        try await bus.stop()
    }

    @Test func `the command line says why no frames come, and they come when it is allowed`() async throws {
        let bus = try await bus()
        let frames = try bus.start(
            "camerabus", ["frames", "cam0", "native", "-n", "3", "--timeout", "60"], as: Self.user)
        try await eventually { frames.standardError.contains("camerabus allow \(Self.user.uid) video") }
        try await isAsked(bus, Self.user)
        try await allow(bus, Self.user)
        let result = try await frames.end()
        #expect(result.status == 0, "\(result)")
        try await deny(bus, Self.user)
        let refused = try await bus.run("camerabus", ["frames", "cam0"], as: Self.user)
        #expect(refused.status == 1 && refused.standardError.contains("unauthorized"), "\(refused)")
        try await bus.stop()
    }
}
