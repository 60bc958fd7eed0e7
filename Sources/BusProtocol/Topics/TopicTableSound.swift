import JSON

extension TopicTable {
    /// The header of sound.
    static let sound = Schema.object(
        [
            .required("v", .constant(1)), .required("device", .string(minLength: 1, maxLength: DeviceID.maxBytes)),
            .required("rendition", .string(minLength: 1)), .required("stream", .string(minLength: 1)),
            .required("sequence", count.described("Counts this topic's messages within stream, without a hole.")),
            .required("firstFrame", count.described("The number of the first frame within stream.")),
            .required("frames", count.described("Frames in the payload: samples of each channel.")),
            .required("sampleFormat", .reference("SampleFormat")),
            .required("rate", .integer(min: 1).described("Frames per second.")),
            .required("channels", .integer(min: 1)),
            .required(
                "overruns",
                count.described("How often the device lost sound within stream, as it was not fetched in time.")),
            .required("generation", count),
            .required(
                "timestamp",
                .object(
                    [
                        .required("monotonic", .reference("Nanoseconds")),
                        .required("realtime", .integer().described("CLOCK_REALTIME, nanoseconds.")),
                        .required("source", .choice(["status", "read"])),
                    ], additional: true
                ).described("Of the first frame.")),
        ], additional: true
    ).described("Interleaved samples follow.")

    private static let decibels = Schema.array(of: .number(min: SoundLevel.floor, max: 0), min: 1)

    /// The header of a level.
    static let level = Schema.object(
        [
            .required("v", .constant(1)), .required("device", .string(minLength: 1, maxLength: DeviceID.maxBytes)),
            .required("stream", .string(minLength: 1)),
            .required("sequence", count.described("Counts this topic's messages within stream.")),
            .required("monotonic", Schema.reference("Nanoseconds").described("The end of the measured time.")),
            .required("average", decibels.described("The mean power of each channel, dBFS.")),
            .required("peak", decibels.described("The loudest sample of each channel, dBFS.")),
        ], additional: true)
}
