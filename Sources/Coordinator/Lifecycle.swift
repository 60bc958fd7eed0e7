/// How far the bus is between its start and its end. Services check this before a late answer changes anything.
final class Lifecycle {
    /// The command socket is open.
    var isServing = false
    /// Ready was reported to the service manager.
    var isReady = false
    /// Movies and photos are being finished, before all else ends. Nothing new begins.
    var isFinishing = false
    /// Everything ends. Nothing is published any more.
    var isStopping = false
}
