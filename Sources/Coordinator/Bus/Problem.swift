import CaptureCore
import JSON

/// Something that a person should know about the setup of the bus: logged when it is new, and published in `state/bus/`
/// while it lasts.
struct Problem: Hashable {
    enum Reason: String {
        /// There is no device at all.
        case noDevices
        /// The configuration has an alias for a device that was never connected.
        case aliasUnknown
        /// A device could not get its id: another device uses it.
        case idTaken
        /// The configuration was read again and is wrong: the one before stays in force.
        case configurationRefused
        /// Aliases and settings of devices could not be read.
        case memoryLost
        /// Decisions about users could not be read.
        case permissionsLost
        /// Decisions about users can't be written.
        case permissionsNotKept
        /// The configuration names a user or a group that does not exist.
        case userUnknown
        /// Aliases and settings of devices can't be written.
        case memoryNotKept
        /// A rig has a device that was never connected.
        case rigIncomplete
        /// A rig can't be used, as a device has its name.
        case rigHidden
    }

    var reason: Reason
    /// One or two sentences that say what to do.
    var message: String

    var json: JSONValue { ["reason": .string(reason.rawValue), "message": .string(message)] }

    /// - Parameters:
    ///   - searched: whether cameras were looked for.
    ///   - unreadable: nodes that could not be looked at.
    ///   - configurationPath: nil: there is no configuration file.
    static func noDevices(searched: Bool, unreadable: [String], configurationPath: String?) -> Problem {
        var sentences: [String] = []
        if !searched {
            sentences.append("The bus does not search for cameras (--no-hardware, or devices.hardware = false).")
        } else if unreadable.isEmpty {
            sentences.append("No camera was found; 'camerabus doctor' finds out why.")
        } else {
            let nodes = unreadable.joined(separator: ", ")
            sentences.append("No camera could be read (\(nodes)); 'camerabus doctor' finds out why.")
        }
        let place = configurationPath.map { "write 'virtual = 2' below [devices] in \($0)" } ?? "start with --virtual 2"
        sentences.append("For two virtual ones, \(place).")
        return Problem(reason: .noDevices, message: sentences.joined(separator: " "))
    }

    static func aliasUnknown(_ alias: String, _ uniqueID: String) -> Problem {
        Problem(
            reason: .aliasUnknown,
            message: "aliases.\(alias): no device with the uniqueID '\(uniqueID)' is connected, or ever was; "
                + "'camerabus devices --json' lists the present ones.")
    }

    static func idTaken(_ collision: DeviceNames.Collision) -> Problem {
        Problem(
            reason: .idTaken,
            message: "\(collision.uniqueID) should be '\(collision.wanted)' and is '\(collision.given)', as "
                + "\(collision.owner) has that id; give one of them another alias.")
    }

    static func configurationRefused(_ why: String) -> Problem {
        Problem(
            reason: .configurationRefused,
            message: "The configuration could not be read again; the one before stays in force. \(why)")
    }

    /// - Parameter reference: the device as its rig names it.
    static func rigIncomplete(_ rig: String, _ reference: String) -> Problem {
        Problem(
            reason: .rigIncomplete,
            message: "The rig '\(rig)' has a device that is not connected: \(reference). Plug it in, or change the rig "
                + "(camerabus rigs set \(rig) …, or the configuration file).")
    }

    static func rigHidden(_ rig: String) -> Problem {
        Problem(
            reason: .rigHidden,
            message: "The rig '\(rig)' can't be used, as a device has that name; rename one of them.")
    }

    /// - Parameters:
    ///   - what: the file's contents: `profiles`, `rigs`.
    ///   - aside: where the damaged file is now.
    static func tableLost(_ what: String, _ aside: String, _ why: String) -> Problem {
        Problem(
            reason: .memoryLost,
            message: "The \(what) were forgotten, as their file is damaged (\(why)). "
                + "It is kept as \(aside); remove that file when it is not needed any more.")
    }

    static func tableUnreadable(_ what: String, _ why: String) -> Problem {
        Problem(reason: .memoryNotKept, message: "The \(what) can't be read, and new ones are not kept: \(why).")
    }

    /// - Parameter aside: where the damaged file is now.
    static func memoryLost(_ aside: String, _ why: String) -> Problem {
        Problem(
            reason: .memoryLost,
            message: "Aliases and settings of cameras were forgotten, as their file is damaged (\(why)). "
                + "It is kept as \(aside); remove that file when it is not needed any more.")
    }

    static func memoryNotKept(_ why: String) -> Problem {
        Problem(
            reason: .memoryNotKept,
            message: "Aliases and settings of cameras will be forgotten when the bus ends: \(why)")
    }

    /// - Parameter aside: where the damaged file is now.
    static func permissionsLost(_ aside: String, _ why: String) -> Problem {
        Problem(
            reason: .permissionsLost,
            message:
                "Decisions about users were forgotten, as their file is damaged (\(why)). "
                + "It is kept as \(aside). Decide again ('camerabus permissions'), and remove that file when it is not "
                + "needed any more."
        )
    }

    static func permissionsNotKept(_ why: String) -> Problem {
        Problem(
            reason: .permissionsNotKept,
            message: "Decisions about users will be forgotten when the bus ends: \(why)")
    }

    /// - Parameter key: `permission.users.ann`
    static func userUnknown(_ key: String) -> Problem {
        Problem(
            reason: .userUnknown,
            message: "\(key): there is no such user or group on this machine; the entry has no effect.")
    }
}

/// Knows problems of one part of the bus.
protocol ProblemReporter {
    var problems: [Problem] { get }
}
