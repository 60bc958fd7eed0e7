import BusProtocol
import CaptureCore
import LinuxIO

/// Who may come in at the device's doors: its media socket and that of its rings. What the coordinator said last holds, also when
/// there is none any more.
final class Doors {
    private(set) var list: DoorList
    /// Whom it was told of since the last change.
    private var told: Set<UInt32> = []
    /// Somebody was turned away for the first time since the last change.
    var onRefused: ((_ uid: UInt32, _ gid: UInt32, _ pid: Int32) -> Void)?
    /// Users who came in vain, since the start of the process.
    private(set) var refused: UInt64 = 0

    private static let maximumTold = 1024

    init(_ list: DoorList) { self.list = list }

    /// Whether that one may have what the device gives.
    func admits(uid: UInt32, gid: UInt32) -> Bool { list.admits(uid: uid, gid: gid) }

    /// The same of one who is at a door just now.
    func admit(uid: UInt32, gid: UInt32, pid: Int32) -> Bool {
        if admits(uid: uid, gid: gid) { return true }
        refused += 1
        if told.count < Self.maximumTold, told.insert(uid).inserted { onRefused?(uid, gid, pid) }
        return false
    }

    /// Others may come in from now on.
    ///
    /// - Returns: whom that makes a difference for.
    func change(_ list: DoorList) -> (_ uid: UInt32, _ gid: UInt32) -> Bool {
        let before = self.list
        self.list = list
        forgetTold()
        return { before.admits(uid: $0, gid: $1) != list.admits(uid: $0, gid: $1) }
    }

    /// Whoever is turned away from now on is told of again: there is another coordinator.
    func forgetTold() { told = [] }
}
