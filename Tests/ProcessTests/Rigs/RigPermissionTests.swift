import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests.Permission {
    /// Says 'set' for each set of the rig that it gets, and 'out' when its connection is ended.
    private static let setWatcher = #"""
        import json, sys
        import zmq
        from zmq.utils.monitor import recv_monitor_message
        directory, rendition = sys.argv[1:3]
        context = zmq.Context()
        sub = context.socket(zmq.SUB)
        monitor = sub.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        sub.rcvhwm = 2
        sub.subscribe(f"set/desk/{rendition}/".encode())
        sub.connect(f"ipc://{directory}/media/desk.sock")
        poller = zmq.Poller()
        poller.register(sub, zmq.POLLIN)
        poller.register(monitor, zmq.POLLIN)
        was_in = False
        def take():
            if "frames" in json.loads(sub.recv_multipart()[1]):
                print("set", flush=True)
        while True:
            ready = dict(poller.poll())
            if sub in ready:
                take()
            if monitor in ready:
                event = recv_monitor_message(monitor)["event"]
                if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                    was_in = True
                elif was_in:
                    was_in = False
                    # What came before is said before.
                    while sub.poll(0):
                        take()
                    print("out", flush=True)
        """#

    @Test func `a matcher without its coordinator and its rig ends at the next start, and nobody gets its sets`()
        async throws
    {
        let cameras = "[devices]\nvirtual = 2\nhardware = false\n"
        let bus = try await BusHarness(
            virtual: nil,
            configuration: OtherUser.configuration + cameras
                + "[permission.users]\n\(Self.user.uid) = \"view\"\n"
                + "[[rig]]\nname = \"desk\"\ndevices = [\"cam0\", \"cam1\"]\n")
        try await eventually { access(bus.directory.mediaSocket("desk"), F_OK) == 0 }
        let stranger = try bus.start(
            OtherUser.python, ["-c", Self.setWatcher, bus.directory.path, Self.witnessed], as: Self.user)
        let witness = try RawClient(
            .subscribe, path: bus.directory.mediaSocket("desk"), topics: ["set/desk/\(Self.witnessed)/"])
        _ = try witness.receive(within: 20)
        try await eventually { lines(stranger, "set").count > 3 }

        guard case .somebody(let matcher?) = LockFile.holder(of: bus.directory.matcherLock("desk")) else {
            throw TestingError("The rig has no matcher.")
        }
        try await bus.killCoordinator()
        try bus.write(OtherUser.configuration + cameras, to: "camerabus.toml")
        try await bus.startCoordinator()
        #expect(try call(bus, "rig.list")["rigs"] == [])
        try await eventually { lines(stranger, "out").count == 1 }
        try await eventually { matcher.hasEnded }
        try await eventually { access(bus.directory.mediaSocket("desk"), F_OK) != 0 }
        withExtendedLifetime(witness) {}
        try await bus.stop()
    }
}
