package import CaptureCore
import LinuxIO

/// A sound card as the kernel shows it in sysfs, without opening it.
package struct ALSASysfsCard: Hashable, Sendable {
    package var number: Int
    /// `PCH`
    package var id: String
    /// The directory of the device that it is of, with all links resolved; empty where there is none.
    package var device: String
    /// What USB says, for a card on USB.
    package var usb: CameraFacts.USB?
    /// Where that device is plugged in; empty where there is nothing to be said.
    package var bus: String
    /// The numbers of its PCMs that can be recorded from, ascending.
    package var captures: [Int]

    /// The node of its controls.
    package var controlNode: String { "/dev/snd/controlC\(number)" }

    /// The node of the PCM of that number.
    package func node(_ pcm: Int) -> String { "/dev/snd/pcmC\(number)D\(pcm)c" }

    /// All cards, in the order of their numbers. Empty without ALSA.
    package static func all(sysfs: String) -> [ALSASysfsCard] {
        let directory = sysfs + "/class/sound"
        let names = Directory.names(directory) ?? []
        return names.compactMap { $0.hasPrefix("card") ? Int($0.dropFirst(4)) : nil }.sorted().map { number in
            let card = directory + "/card\(number)"
            let device = Sysfs.resolve(card + "/device") ?? ""
            // pcmC0D0c
            let prefix = "pcmC\(number)D"
            return ALSASysfsCard(
                number: number, id: Sysfs.attribute(card + "/id") ?? "", device: device, usb: Sysfs.usb(above: device),
                bus: Sysfs.bus(of: device),
                captures: names.compactMap { name in
                    guard name.hasPrefix(prefix), name.hasSuffix("c") else { return nil }
                    return Int(name.dropFirst(prefix.count).dropLast())
                }.sorted())
        }
    }
}
