import CaptureCore
import JSON
import Testing

/// From what the kernel tells to a level, and from levels to whether a device has to stop.
@Suite struct SystemPressureTests {
    private static func text(_ some: Double, _ full: Double) -> String {
        """
        some avg10=\(some) avg60=1.00 avg300=2.00 total=123456
        full avg10=\(full) avg60=0.50 avg300=1.00 total=12345
        """
    }

    @Test func `a stall is read as the kernel writes it`() throws {
        #expect(StallReading(Self.text(12.5, 3.25)) == StallReading(some: 12.5, full: 3.25))
        #expect(StallReading("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n") == StallReading(some: 0))
        for text in [
            "", "some", "some avg10= avg60=0", "full avg10=1.0", "some avg10=x", "some avg10=nan", "\0\u{fffd}",
        ] {
            #expect(StallReading(text) == nil, "\(text)")
        }
        #expect(StallReading("some avg10=1e9") == StallReading(some: 100))
        #expect(StallReading("some avg10=-4") == StallReading(some: 0))
    }

    @Test func `only memory stops cameras, and processors that are busy do no more than warn`() {
        func level(_ factor: SystemPressureFactor, _ some: Double, _ full: Double) -> SystemPressureLevel {
            var gauge = SystemPressureGauge()
            gauge.take(StallReading(some: some, full: full), of: factor)
            return gauge.state.level
        }
        #expect(level(.cpu, 49, 0) == .nominal && level(.cpu, 50, 0) == .fair && level(.cpu, 100, 100) == .serious)
        #expect(level(.io, 60, 0) == .fair && level(.io, 100, 100) == .serious)
        #expect(level(.memory, 9, 9) == .nominal && level(.memory, 10, 9) == .fair)
        #expect(level(.memory, 99, 10) == .serious && level(.memory, 99, 30) == .critical)
        #expect(level(.memory, 99, 59.9) == .critical && level(.memory, 99, 60) == .shutdown)
    }

    @Test func `a level falls only well below its threshold`() {
        var gauge = SystemPressureGauge()
        func take(_ full: Double) -> SystemPressureLevel {
            gauge.take(StallReading(some: full, full: full), of: .memory)
            return gauge.state.level
        }
        #expect(take(60) == .shutdown && take(55) == .shutdown && take(53) == .critical)
        // Not up again by the same: that takes the limit itself.
        #expect(take(55) == .critical && take(60) == .shutdown)
        #expect(take(5) == .nominal)
        gauge.take(StallReading(some: 99, full: 99), of: .memory)
        gauge.take(nil, of: .memory)
        #expect(gauge.state == .nominal)
    }

    @Test func `the highest factor counts, with all that have reached it`() {
        var gauge = SystemPressureGauge()
        gauge.take(StallReading(some: 60), of: .cpu)
        gauge.take(StallReading(some: 20), of: .memory)
        #expect(gauge.state.level == .fair && gauge.state.factors == [.cpu, .memory])
        gauge.take([ThermalZone(temperature: 95_000, trips: [.init(type: "passive", temperature: 90_000)])])
        #expect(gauge.state.json == ["level": "serious", "factors": ["systemTemperature"]])
        #expect(SystemPressureState(json: gauge.state.json) == gauge.state)
        #expect(SystemPressureState.nominal.json == ["level": "nominal", "factors": []])
        let camera = SystemPressureState([.cameraTemperature: .serious])
        #expect(camera.joined(gauge.state).factors == [.cameraTemperature, .systemTemperature])
        #expect(camera.joined(.nominal) == camera && SystemPressureState.nominal.joined(camera) == camera)
    }

    @Test func `a zone's trips say what is too hot for it, and what firmware makes up says nothing`() {
        let trips: [ThermalZone.Trip] = [
            .init(type: "active", temperature: 60_000), .init(type: "passive", temperature: 90_000),
            .init(type: "hot", temperature: 97_000), .init(type: "critical", temperature: 105_000),
        ]
        var gauge = SystemPressureGauge()
        func level(_ temperature: Int, _ trips: [ThermalZone.Trip]) -> SystemPressureLevel {
            gauge = SystemPressureGauge()
            gauge.take([
                ThermalZone(temperature: 30_000, trips: trips), ThermalZone(temperature: temperature, trips: trips),
            ])
            return gauge.state.level
        }
        #expect(level(59_999, trips) == .nominal && level(60_000, trips) == .fair && level(90_000, trips) == .serious)
        #expect(level(97_000, trips) == .critical && level(103_000, trips) == .shutdown)
        #expect(
            level(104_000, [.init(type: "critical", temperature: 0), .init(type: "hot", temperature: -274_000)])
                == .nominal)
        #expect(!ThermalZone(temperature: 1, trips: [.init(type: "passive", temperature: 0)]).isMeaningful)
        #expect(level(Int.max, trips) == .shutdown && level(Int.min, trips) == .nominal)
        // Three degrees less, at least, until it is over.
        _ = level(103_000, trips)
        gauge.take([ThermalZone(temperature: 100_001, trips: trips)])
        #expect(gauge.state.level == .shutdown)
        gauge.take([ThermalZone(temperature: 99_999, trips: trips)])
        #expect(gauge.state.level == .critical)
    }

    @Test func `a stopped device resumes when the pressure is no more than serious`() {
        var brake = SystemPressureBrake()
        #expect(!brake.take(.critical) && !brake.isOn)
        #expect(brake.take(.shutdown) && brake.isOn)
        #expect(!brake.take(.critical) && brake.isOn)
        #expect(brake.take(.serious) && !brake.isOn)
        #expect(!brake.take(.critical) && !brake.isOn)
        // Nobody else has a say in it.
        #expect(!brake.adopt(isOn: true) && !brake.isOn)
    }

    @Test func `a device that somebody else has stopped stays so, until the pressure is known and over`() {
        var brake = SystemPressureBrake(isKnown: false)
        #expect(!brake.take(.nominal) && !brake.isOn && !brake.isKnown)
        #expect(brake.adopt(isOn: true) && brake.isOn && brake.isKnown)
        #expect(!brake.take(.critical) && brake.isOn)
        #expect(brake.take(.nominal) && !brake.isOn)
        var other = SystemPressureBrake(isKnown: false)
        #expect(!other.adopt(isOn: false) && other.isKnown && !other.isOn)
        // What is so high already needs nobody's word.
        var high = SystemPressureBrake(isKnown: false)
        #expect(high.take(.shutdown) && high.isKnown && high.isOn)
        #expect(!high.adopt(isOn: false) && high.isOn)
    }
}
