import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureLibrary
import CaptureSources
import JSON
import LinuxIO
import Testing

@testable import Worker

/// Photos that a worker puts into the library.
extension PhotoTests {
    private func place(_ folder: String, _ count: Int = 1, minFree: Int64 = 0) -> PhotoPlace {
        PhotoPlace(
            library: folder, directory: "\(folder)/2026-11-22", stem: "photo-120000-a",
            ids: (0..<count).map { "p\($0)" }, owner: LockHolder(uid: 1, gid: 1, pid: 7, name: "test"),
            session: "s1", device: PhotoPlace.Device(id: "cam0", uniqueID: "virtual-0", name: "Virtual"),
            minFree: minFree)
    }

    private func ids(_ library: CaptureLibrary) throws -> [String] {
        var ids: [String] = []
        try library.forEachStamp { id, _ in ids.append(id) }
        return ids
    }

    @Test("a photo in the library is whole, and entered")
    func stored() throws {
        let folder = try TemporaryDirectory()
        let worker = try fixture()
        let settings = PhotoSettings(burst: 2)
        let capture = try capture(worker, order("a", settings, place: place("\(folder.path)/library", 2)))
        let library = try CaptureLibrary("\(folder.path)/library", isMade: false)
        #expect(try ids(library).count == 2)
        for photo in capture.photos {
            let id = try #require(photo.id)
            let entry = try #require(try library.entry(id))
            #expect(entry.kind == .photo && entry.state == .finished && entry.path == photo.path)
            #expect(entry.size == Int64(photo.bytes) && entry.photo?.index == photo.index && entry.session == "s1")
            #expect(try File.read(entry.path, limit: 1 << 24) == capture.files[photo.index])
        }
        #expect(
            capture.photos.compactMap(\.path).map { $0.split(separator: "/").last ?? "" }
                == ["photo-120000-a-0.jpg", "photo-120000-a-1.jpg"])
    }

    @Test("a name that is taken is passed over")
    func taken() throws {
        let folder = try TemporaryDirectory()
        let worker = try fixture()
        var second = place(folder.path)
        second.ids = ["q0"]
        let first = try capture(worker, order("a", attaches: false, place: place(folder.path)))
        let other = try capture(worker, order("b", attaches: false, place: second))
        #expect(first.files.isEmpty && other.photos.first?.path?.hasSuffix("/photo-120000-a_2.jpg") == true)
    }

    @Test(
        "a full disk leaves nothing of a photo, and says what is missing",
        .enabled(if: SmallDisk.obstacle == nil, "may not mount a disk"))
    func diskFull() async throws {
        let disk = try await SmallDisk(megabytes: 1)
        let worker = try fixture()
        let filler = try disk.fill(leaving: 12_000)
        let coordinator = try worker.coordinator
        _ = try coordinator.order(.preparePhoto(order("a", attaches: false, place: place(disk.path)))).get()
        let refused = try coordinator.order(.takePhoto(job: "a"))
        guard case .failure(let error) = refused else { return #expect(Bool(false), "\(refused)") }
        #expect(error.reason == .diskFull, "\(error)")
        #expect((error.data["free"]?.integer ?? .max) < (error.data["needed"]?.integer ?? 0))
        // Who has it in the reply as well has it there.
        let attached = try capture(worker, order("d", place: place(disk.path)))
        #expect(attached.files.count == 1 && attached.photos.first?.error?.reason == .diskFull)
        #expect(attached.photos.first?.id == nil)
        let library = try CaptureLibrary(disk.path, isMade: false)
        #expect(try ids(library).isEmpty)
        File.remove(filler)
        #expect(try capture(worker, order("b", place: place(disk.path))).photos.first?.path != nil)
        var spare = place(disk.path, minFree: 1 << 30)
        spare.ids = ["q0"]
        _ = try coordinator.order(.preparePhoto(order("c", attaches: false, place: spare))).get()
        let kept = try coordinator.order(.takePhoto(job: "c"))
        guard case .failure(let spared) = kept else { return #expect(Bool(false), "\(kept)") }
        #expect(spared.reason == .diskFull && (spared.data["needed"]?.integer ?? 0) > 1 << 30)
    }
}
