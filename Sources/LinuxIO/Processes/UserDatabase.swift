import Glibc

/// The machine's users and groups, as its name service has them (`getpwnam_r(3)`, `getgrnam_r(3)`). A look-up may wait
/// for a network.
public enum UserDatabase {
    /// The user's number; nil when there is no user of that name.
    public static func userID(named name: String) -> UInt32? {
        guard !name.utf8.contains(0) else { return nil }
        var entry = passwd()
        return found { buffer, size, result in
            getpwnam_r(name, &entry, buffer, size, &result)
        } then: { (user: UnsafeMutablePointer<passwd>) in
            user.pointee.pw_uid
        }
    }

    /// The user's name; nil when there is no user of that number.
    public static func userName(_ uid: UInt32) -> String? {
        var entry = passwd()
        return found { buffer, size, result in
            getpwuid_r(uid, &entry, buffer, size, &result)
        } then: { (user: UnsafeMutablePointer<passwd>) in
            user.pointee.pw_name.map { String(cString: $0) }
        }
    }

    /// A group's number, and the names of the users whom it lists; nil when there is no group of that name.
    public static func group(named name: String) -> (gid: UInt32, members: [String])? {
        guard !name.utf8.contains(0) else { return nil }
        var entry = Glibc.group()
        return found { buffer, size, result in
            getgrnam_r(name, &entry, buffer, size, &result)
        } then: { (group: UnsafeMutablePointer<group>) in
            read(group)
        }
    }

    /// Likewise by its number.
    public static func group(_ gid: UInt32) -> (gid: UInt32, members: [String])? {
        var entry = Glibc.group()
        return found { buffer, size, result in
            getgrgid_r(gid, &entry, buffer, size, &result)
        } then: { (group: UnsafeMutablePointer<group>) in
            read(group)
        }
    }

    private static func read(_ group: UnsafeMutablePointer<group>) -> (gid: UInt32, members: [String]) {
        var members: [String] = []
        var next = group.pointee.gr_mem
        while let name = next?.pointee {
            members.append(String(cString: name))
            next = next?.successor()
        }
        return (group.pointee.gr_gid, members)
    }

    // A large group needs a larger buffer, which only trying tells.
    private static func found<Entry, Value>(
        _ look: (UnsafeMutablePointer<CChar>, Int, inout UnsafeMutablePointer<Entry>?) -> Int32,
        then read: (UnsafeMutablePointer<Entry>) -> Value?
    ) -> Value? {
        var size = 16384
        while size <= 16 << 20 {
            let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: size)
            defer { buffer.deallocate() }
            var result: UnsafeMutablePointer<Entry>?
            let code = look(buffer, size, &result)
            if code == EINTR { continue }
            if code != ERANGE { return code == 0 ? result.flatMap(read) : nil }
            size *= 4
        }
        return nil
    }
}
