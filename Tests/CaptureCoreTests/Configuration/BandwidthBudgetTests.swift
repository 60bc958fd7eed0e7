import JSON
import Testing

@testable import CaptureCore

/// What cameras cost their USB buses, and what would run of those that cost too much.
@Suite struct BandwidthBudgetTests {
    private let formats = [
        format("y0", .yuyv, 640, 480, 30, 15), format("y1", .yuyv, 1280, 720, 30, 10),
        format("m0", .motionJPEG, 640, 480, 30, 15), format("m1", .motionJPEG, 1280, 720, 30, 15, 5),
        format("m2", .motionJPEG, 1920, 1080, 30, 15, 5),
    ]

    private func link(_ bus: Int, speed: Int = 480, busSpeed: Int = 480) -> USBLink {
        USBLink(
            controller: "/sys/devices/pci0000:00/0000:00:14.0",
            bus: "/sys/devices/pci0000:00/0000:00:14.0/usb\(bus)", speed: speed, busSpeed: busSpeed)
    }

    private func setting(_ id: String, rate: Int, in formats: [CaptureFormat]? = nil) -> StreamSetting {
        let row = (formats ?? self.formats).first { $0.id == id }
        return StreamSetting(
            formatID: id,
            format: FormatSelection(
                pixelFormat: row?.pixelFormat ?? .grey, dimensions: row?.dimensions ?? Dimensions(width: 1, height: 1)),
            frameDuration: FrameDuration(framesPerSecond: rate))
    }

    private func load(
        _ device: String, _ id: String, rate: Int, on link: USBLink?, isFixed: Bool = false
    ) -> BandwidthLoad {
        BandwidthLoad(device: device, link: link, setting: setting(id, rate: rate), formats: formats, isFixed: isFixed)
    }

    @Test func whatFormatsTake() {
        #expect(setting("y1", rate: 30).bitRate == 1280 * 720 * 16 * 30)
        #expect(setting("m1", rate: 30).bitRate == 1280 * 720 * 2 * 30)
        for (name, bits) in [("NV12", 12.0), ("BGR3", 24), ("GREY", 8), ("XR24", 32), ("YV12", 12), ("????", 16)] {
            #expect(PixelFormat(name)?.bitsPerPixel == bits, "\(name)")
        }
    }

    /// The known figures: one uncompressed 720p at 10/s fits USB 2 with room to spare, two at 30/s do not.
    @Test func whatABusHolds() {
        let one = BandwidthBudget([load("a", "y1", rate: 10, on: link(1))])
        #expect(one.hardwareCost > 0.4 && one.hardwareCost < 0.5 && one.canRun)
        let two = BandwidthBudget([load("a", "y1", rate: 10, on: link(1)), load("b", "y1", rate: 30, on: link(1))])
        #expect(two.hardwareCost > 1 && !two.canRun)
        let apart = BandwidthBudget([load("a", "y1", rate: 10, on: link(1)), load("b", "y1", rate: 10, on: link(3))])
        #expect(apart.hardwareCost == one.hardwareCost && apart.buses.count == 2)
        let fast = BandwidthBudget(
            (0..<6).map { load("c\($0)", "y1", rate: 30, on: link(2, speed: 5000, busSpeed: 5000)) })
        #expect(fast.hardwareCost > 0.8 && fast.canRun)
        #expect(BandwidthBudget([load("virtual", "y1", rate: 30, on: nil)]).hardwareCost == 0)
        #expect(BandwidthBudget([]).hardwareCost == 0)
    }

    /// A camera that offers compressed pictures makes them fit its port; a slow port counts though its bus is fast.
    @Test func portsCount() {
        let huge = [format("m", .motionJPEG, 3840, 2160, 60)]
        var load = BandwidthLoad(
            device: "a", link: link(1), setting: setting("m", rate: 60, in: huge), formats: huge)
        #expect(BandwidthBudget([load]).hardwareCost < 0.7)
        load.measuredBitRate = 20_000_000
        #expect(load.bitRate == 20_000_000)
        let slow = BandwidthBudget([self.load("a", "y0", rate: 15, on: link(1, speed: 12, busSpeed: 10000))])
        #expect(slow.hardwareCost > 1)
    }

    // MARK: What would run

    @Test func compressedBeforeSlowerBeforeSmaller() throws {
        let two = BandwidthBudget([
            load("back", "y1", rate: 30, on: link(1)), load("front", "y0", rate: 15, on: link(1)),
        ])
        let plan = try #require(two.plan)
        #expect(plan.runs)
        #expect(plan.changes == [.init(device: "back", from: setting("y1", rate: 30), to: setting("m1", rate: 30))])
        #expect(
            plan.explanation == [
                "USB bus 1 has room for 326 Mb/s, and back and front need 516 Mb/s together.",
                "back would stream MJPG instead of YUYV.", "That needs 129 Mb/s, which fits.",
            ])

        let five = BandwidthBudget((0..<5).map { load("c\($0)", "m2", rate: 30, on: link(1)) })
        let slower = try #require(five.plan)
        #expect(slower.runs)
        #expect(slower.changes.allSatisfy { $0.to == setting("m2", rate: 15) })
        let twelve = BandwidthBudget((0..<12).map { load("c\($0 + 10)", "m2", rate: 30, on: link(1)) })
        let smaller = try #require(twelve.plan)
        #expect(smaller.runs)
        #expect(smaller.changes.contains { $0.to == setting("m1", rate: 15) })
        #expect(smaller.changes.allSatisfy { $0.to.frameDuration == duration(1, 15) }, "no slower before smaller")
        #expect(BandwidthBudget([load("a", "y0", rate: 30, on: link(1))]).plan == nil)
    }

    @Test func fixedOnesStay() throws {
        let budget = BandwidthBudget([
            load("a", "y1", rate: 30, on: link(1), isFixed: true), load("b", "y1", rate: 30, on: link(1)),
        ])
        let plan = try #require(budget.plan)
        #expect(!plan.runs)
        #expect(plan.changes.map(\.device) == ["b"])
        #expect(plan.explanation.last?.hasPrefix("Even that needs") == true)
        let held = BandwidthBudget([load("a", "y1", rate: 30, on: link(1), isFixed: true)])
        #expect(try #require(held.plan).explanation.count == 2)
    }

    /// Only cameras of the bus that is too full are asked to take less.
    @Test func otherBusesAreLeftAlone() throws {
        let budget = BandwidthBudget([
            load("a", "y1", rate: 30, on: link(1)), load("b", "y1", rate: 10, on: link(3)),
            load("c", "y1", rate: 30, on: nil),
        ])
        let plan = try #require(budget.plan)
        #expect(plan.changes.map(\.device) == ["a"])
        #expect(plan.budget.buses.count == 2)
        #expect(plan.json["hardwareCost"]?.double.map { $0 <= 1 } == true)
        #expect(budget.json["hardwareCost"]?.double.map { $0 > 1 } == true)
    }

    // MARK: One after the other

    @Test func ladder() {
        let settings = DegradeLadder.settings(below: setting("y1", rate: 30), in: formats)
        #expect(
            settings == [
                setting("m1", rate: 30), setting("m1", rate: 15), setting("m0", rate: 15),
            ])
        #expect(
            DegradeLadder.settings(below: setting("m2", rate: 15), in: formats) == [
                setting("m1", rate: 15), setting("m0", rate: 15),
            ])
        #expect(DegradeLadder.settings(below: setting("y0", rate: 15), in: [formats[0]]).isEmpty)
    }

    /// Each step takes less, is one that the device has, and there is an end, whatever the table says.
    @Test(arguments: seeds) func everyStepTakesLess(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let formats = (0..<(1 + random.below(9))).map { index in
                var format = format(
                    "f\(index)", random.pick([.yuyv, .motionJPEG, .grey, .h264]), 16 * (1 + random.below(120)),
                    8 * (1 + random.below(135)))
                format.frameRates = random.some([1, 5, 7, 15, 25, 30, 60], atMost: 4).map { rate($0) }
                if random.chance(30) {
                    format.frameRates = [
                        FrameRateRange(minFrameDuration: duration(1, 60), maxFrameDuration: duration(2, 3))
                    ]
                }
                if random.chance(30) {
                    format.sizes = DimensionRange(
                        minimum: Dimensions(width: 16, height: 8), maximum: format.dimensions,
                        step: Dimensions(width: 16, height: 8))
                }
                return format
            }
            let row = random.pick(formats)
            let start = StreamSetting(
                formatID: row.id, format: FormatSelection(pixelFormat: row.pixelFormat, dimensions: row.dimensions),
                frameDuration: row.frameRates.randomElement(using: &random)?.minFrameDuration)
            var last = start
            for setting in DegradeLadder.settings(below: start, in: formats) {
                #expect(setting.bitRate < last.bitRate, "seed \(seed)")
                #expect(
                    formats.contains { format in
                        format.id == setting.formatID && format.pixelFormat == setting.format.pixelFormat
                            && format.has(setting.format.dimensions)
                            && format.frameRates.contains { range in
                                setting.frameDuration.map {
                                    range.minFrameDuration <= $0 && $0 <= range.maxFrameDuration
                                } ?? false
                            }
                    }, "seed \(seed): \(setting)")
                last = setting
            }
            let loads = (0..<3).map {
                BandwidthLoad(device: "d\($0)", link: link(1), setting: start, formats: formats, isFixed: $0 == 0)
            }
            let budget = BandwidthBudget(loads)
            guard let plan = budget.plan else { continue }
            #expect(plan.budget.hardwareCost <= budget.hardwareCost && plan.runs == plan.budget.canRun)
            #expect(!plan.changes.contains { $0.device == "d0" })
        }
    }

    /// What a step means to those who want something is asked of the arbiter with nothing else in the table.
    @Test func onlyOneSetting() {
        let only = formats.only(setting("m1", rate: 15))
        let demand = CaptureDemand(
            CaptureParty(.session, id: "s"), since: 0, wish: .size(Dimensions(width: 640, height: 480)))
        let decision = Arbiter.decide(
            device: "front", formats: only, current: setting("m2", rate: 30), isStreaming: false, demands: [demand])
        #expect(decision.setting == setting("m1", rate: 15))
    }

    @Test func links() {
        let link = link(2, speed: 480, busSpeed: 5000)
        #expect(USBLink(json: link.json) == link)
        #expect(link.busName == "USB bus 2")
        #expect(USBLink(json: ["controller": "a", "bus": "b", "speed": 0, "busSpeed": 480]) == nil)
        #expect(USBLink(json: .null) == nil)
    }
}
