import BusServer
import CaptureCore

/// A worker's connection to the coordinator.
typealias CoordinatorLink = OrderLink<WorkerOrder, WorkerReport>
