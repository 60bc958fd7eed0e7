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

    @Test("a photo and its DNG are of one frame, and have one name")
    func pair() throws {
        let folder = try TemporaryDirectory()
        let worker = try fixture {
            $0.configuration = [
                "generation": 1, "frameDuration": "1/60", "controls": [],
                "activeFormat": ["pixelFormat": "RGGB", "width": 320, "height": 240],
            ]
        }
        let settings = PhotoSettings(withRaw: true, burst: 2)
        let pair = try capture(worker, order("a", settings, place: place(folder.path, 4)))
        #expect(pair.stages.count { $0 == .processed } == 4)
        #expect(pair.resolution.format == .jpeg && pair.resolution.photos == 4)
        #expect(pair.resolution.raw == Dimensions(width: 320, height: 240))
        #expect(pair.photos.map(\.index) == [0, 0, 1, 1] && pair.photos.map(\.fileType) == [.jpeg, .dng, .jpeg, .dng])
        for first in [0, 2] {
            let (photo, raw) = (pair.photos[first], pair.photos[first + 1])
            #expect(photo.sequence == raw.sequence && photo.timestamp == raw.timestamp && photo.stream == raw.stream)
        }
        #expect(pair.photos[0].sequence < pair.photos[2].sequence && Set(pair.photos.map(\.id)).count == 4)
        #expect(pair.files.map { Array($0.prefix(2)) } == [[0xFF, 0xD8], [0x49, 0x49], [0xFF, 0xD8], [0x49, 0x49]])
        let names = pair.photos.compactMap(\.path).map { String($0.split(separator: "/").last ?? "") }
        #expect(names == ["-0.jpg", "-0.dng", "-1.jpg", "-1.dng"].map { "photo-120000-a\($0)" })
        // One name is taken: neither file gets it.
        var other = place(folder.path, 2)
        (other.stem, other.ids) = ("photo-120000-a-0", ["q0", "q1"])
        File.remove(try #require(pair.photos[0].path))
        let next = try capture(worker, order("b", PhotoSettings(withRaw: true), place: other))
        let others = next.photos.compactMap(\.path).map { String($0.split(separator: "/").last ?? "") }
        #expect(others == ["photo-120000-a-0_2.jpg", "photo-120000-a-0_2.dng"])
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
