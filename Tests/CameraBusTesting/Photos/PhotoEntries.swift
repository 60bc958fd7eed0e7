public import CaptureLibrary
import JSON
import LinuxIO

extension LibraryEntry {
    /// A photo that is about to be stored, of a virtual camera.
    public static func photo(
        _ id: String, in library: CaptureLibrary, request: String = "request", index: Int = 0, uid: UInt32? = nil,
        started: Int64 = 1_795_333_303_000_000_000
    ) -> LibraryEntry {
        LibraryEntry(
            id: id, kind: .photo, path: "\(library.directory)/2026-11-22/\(id).jpg",
            devices: [LibraryDevice(device: "cam0", uniqueID: "virtual-0", name: "Virtual Camera 0")],
            started: started, fileType: "jpeg",
            photo: LibraryPhoto(
                uniqueID: request, index: index, width: 1280, height: 720, details: ["flashFired": false]),
            owner: LibraryOwner(uid: uid ?? CurrentProcess.uid, pid: 42, name: "a test"))
    }
}
