import Testing

@testable import Gateway

/// What one connection gets of a topic.
@Suite struct ViewerTests {
    private func item(_ number: Int, at time: Int64 = 0, key: Bool? = nil) -> MediaItem {
        MediaItem(frames: [], bytes: number, arrived: time, isKey: key)
    }

    /// What the viewer takes, by the sizes.
    private func take(_ viewer: inout Viewer, _ recent: RecentMessages<MediaItem>, at now: Int64 = 0) -> [Int] {
        var found: [Int] = []
        while let item = viewer.take(from: recent, at: now) {
            found.append(item.bytes)
            viewer.sent(bytes: item.bytes)
        }
        return found
    }

    private func expect(
        _ expected: [Int], _ viewer: inout Viewer, _ recent: RecentMessages<MediaItem>, at now: Int64 = 0,
        location: SourceLocation = #_sourceLocation
    ) {
        let found = take(&viewer, recent, at: now)
        #expect(found == expected, sourceLocation: location)
    }

    @Test func `one gets what it asked for, and the present when it asks late`() {
        var recent = RecentMessages<MediaItem>()
        var viewer = Viewer(after: recent.newest, at: 0)
        recent.put(item(1), room: 1)
        expect([], &viewer, recent)
        viewer.ask(raw: false, at: 0)
        expect([1], &viewer, recent)
        for number in 2...9 { recent.put(item(number), room: 1) }
        expect([], &viewer, recent)
        viewer.ask(raw: false, at: 0)
        expect([9], &viewer, recent)
        // Not the same one again.
        viewer.ask(raw: false, at: 0)
        expect([], &viewer, recent)
        recent.put(item(10), room: 1)
        expect([10], &viewer, recent)
    }

    @Test func `who only asks, and takes nothing, has asked for so many at most`() {
        var viewer = Viewer(after: 0, at: 0)
        for _ in 0..<1000 { viewer.ask(raw: false, at: 0) }
        #expect(viewer.credit == Viewer.maximumCredit)
        var recent = RecentMessages<MediaItem>()
        var got = 0
        for number in 1...100 {
            recent.put(item(number), room: 1)
            got += take(&viewer, recent).count
        }
        #expect(got == Viewer.maximumCredit && viewer.bytesUnderWay > 0)
        // Asking on says that the oldest was taken.
        let before = viewer.bytesUnderWay
        viewer.ask(raw: true, at: 0)
        #expect(viewer.bytesUnderWay < before && viewer.credit == 1 && viewer.takesRaw)
    }

    @Test func `a new viewer waits for the next, and nobody gets what is of the past`() {
        var recent = RecentMessages<MediaItem>()
        recent.put(item(1, at: 0), room: 1)
        var viewer = Viewer(after: recent.newest, at: 0)
        viewer.ask(raw: false, at: 0)
        expect([], &viewer, recent)
        recent.put(item(2, at: 5), room: 1)
        expect([], &viewer, recent, at: 5 + Viewer.staleness + 1)
        recent.put(item(3, at: 10), room: 1)
        expect([3], &viewer, recent, at: 10 + Viewer.staleness)
    }

    @Test func `frames that build on one another come in a row from a key frame on, and after a loss from the next`() {
        var recent = RecentMessages<MediaItem>()
        var viewer = Viewer(after: 0, at: 0)
        for _ in 0..<4 { viewer.ask(raw: false, at: 0) }
        recent.put(item(1, key: false), room: 4)
        recent.put(item(2, key: true), room: 4)
        recent.put(item(3, key: false), room: 4)
        expect([2, 3], &viewer, recent)
        for number in 4...9 { recent.put(item(number, key: number == 8), room: 4) }
        // 4 and 5 are not kept any more.
        expect([8, 9], &viewer, recent)
    }

    @Test func `what could not be sent is a loss like any other`() {
        var recent = RecentMessages<MediaItem>()
        var viewer = Viewer(after: 0, at: 0)
        viewer.ask(raw: false, at: 0)
        recent.put(item(1, key: true), room: 4)
        let first = viewer.take(from: recent, at: 0)?.bytes
        viewer.lost()
        recent.put(item(2, key: false), room: 4)
        let second = viewer.take(from: recent, at: 0)?.bytes
        recent.put(item(3, key: true), room: 4)
        let third = viewer.take(from: recent, at: 0)?.bytes
        #expect([first, second, third] == [1, nil, 3])
    }

    @Test func `who asks for nothing for long, and waits for nothing, is idle`() {
        var recent = RecentMessages<MediaItem>()
        var viewer = Viewer(after: 0, at: 0)
        viewer.ask(raw: false, at: 5)
        #expect(!viewer.isIdle(at: 6 + Viewer.patience))
        recent.put(item(1), room: 1)
        expect([1], &viewer, recent)
        #expect(!viewer.isIdle(at: 5 + Viewer.patience) && viewer.isIdle(at: 6 + Viewer.patience))
        viewer.ask(raw: false, at: 7 + Viewer.patience)
        #expect(!viewer.isIdle(at: 8 + Viewer.patience))
    }
}
