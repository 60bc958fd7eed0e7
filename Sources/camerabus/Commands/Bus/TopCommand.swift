import ArgumentParser
import BusClient
import Glibc
import JSON
import LinuxIO

struct TopCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "top", abstract: "Shows rates, losses, readers and cost of every device, live.",
        discussion: """
            RATE is what the camera gives, in frames a second, or the microphone, in samples a second of each channel. LOST were lost by the driver, DAMAGED came so, and for those LEFT OUT there \
            was no time: all since 'camerabus top' began. READERS counts subscribers and readers of shared memory, the latter in brackets, too; below a device stands what is made of its \
            frames for them, and the pressure that it, or the machine, is under. CPU is of one processor, MEMORY what the device's worker has in use. Ends by Ctrl-C.

            With --json: a line each time, {monotonic, bus: {load, residentBytes, requestRate, connections}, devices: [{id, state, \
            systemPressureState, activeFormat, frameRate, lost, damaged, leftOut, subscriptions, readers, sharedReaders, load, residentBytes, renditions}]}; a load of 1 is \
            all of one processor.

            EXAMPLES:
              camerabus top
              camerabus top cam0
              camerabus top --interval 5 --json | jq -c '[.devices[] | {id, frameRate, load}]'
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: "The devices to show (default: all).", completion: deviceCompletion)
    var devices: [String] = []

    @Option(
        parsing: .unconditional, help: ArgumentHelp("From one look to the next, in seconds.", valueName: "seconds"))
    var interval: Seconds = 2

    @Option(
        name: .shortAndLong, parsing: .unconditional,
        help: ArgumentHelp("End after so many looks (default: never).", valueName: "count"))
    var number: Int?

    func validate() throws {
        // Workers tell their counts once a second; a look in between would show nothing new.
        guard interval.value >= 1 else { throw ValidationError("--interval takes a number of seconds from 1 on.") }
        if let number, number < 1 { throw ValidationError("--number takes a number above 0.") }
    }

    func run(_ client: Client) async throws {
        // Of a name that nothing has the bus says so.
        for device in devices { _ = try await client.device(device, timeout: timeout) }
        let first = try await sample(client)
        var before = first
        var left = number ?? .max
        while left > 0 {
            try await Task.sleep(for: interval.duration)
            let now = try await sample(client)
            try show(BusActivity(since: first, from: before, to: now))
            before = now
            left -= 1
        }
    }

    private func sample(_ client: Client) async throws -> BusActivitySample {
        let counters = try await client.call("bus.metrics", timeout: timeout)["counters"]?.object ?? [:]
        let time = MonotonicClock.now()
        let all = try await client.devices(timeout: timeout)
        let wanted = all.filter { device in devices.isEmpty || device["id"]?.string.map(devices.contains) ?? false }
        return BusActivitySample(time: time, devices: wanted, counters: counters)
    }

    private func show(_ traffic: BusActivity) throws {
        if options.json { return try Output.json(traffic.json) }
        let isTerminal = isatty(STDOUT_FILENO) == 1
        // In place of what was shown before: home, and clear what is below.
        let text = (isTerminal ? "\u{1B}[H\u{1B}[2J" : "") + traffic.lines.joined(separator: "\n") + "\n"
        try Output.bytes(Array(text.utf8))
        if !isTerminal { try Output.line("") }
    }
}
