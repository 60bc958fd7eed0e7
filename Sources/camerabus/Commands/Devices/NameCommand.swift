import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct NameCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "name", abstract: "Gives a device another id, permanently.",
        discussion: """
            ALIAS becomes the device's id in commands, topics and the name of its media socket, also after a reboot. \
            Subscribers of the old id have to subscribe again. An alias from the configuration file can't be changed \
            with this command. Names that a camera has had stay its own: no program's device can get them. If a \
            program's device has ALIAS now, an administrator can take it: the device continues under another id.

            The new id is printed. With --json: the result of the method device.rename.

            EXAMPLES:
              camerabus name hd-webcam-c270-3f1a front
              camerabus name front --remove
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var lock: LockOptions

    @Argument(help: deviceHelp, completion: deviceCompletion)
    var device: String

    @Argument(help: ArgumentHelp("The new id: \(DeviceID.form).", valueName: "alias"))
    var alias: String?

    @Flag(help: "Remove the alias. The device gets back the id that the bus chose.")
    var remove = false

    func validate() throws {
        if remove == (alias != nil) { throw ValidationError("Give either an alias or --remove.") }
        if let alias, alias.isEmpty { throw ValidationError("An alias needs at least one character.") }
    }

    func run(_ client: Client) async throws {
        let answer = try await client.rename(device, to: alias, lock: lock.lock, timeout: timeout)
        if options.json { return try Output.json(answer) }
        try Output.line(ValueText.plain(answer["device"]?["id"]))
        PersistenceNote.note(answer)
    }
}
