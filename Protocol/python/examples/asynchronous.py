# Reads two cameras in two tasks while a third waits its turn for a lock: nothing waits for anything else.
import asyncio
import sys

from camerabus import AsyncClient, CaptureError


async def show(client: AsyncClient, camera: str) -> None:
    async for frame in client.frames(camera, rendition="gray:320x0@5", limit=10):
        print(f"{camera}: frame {frame.sequence}, {frame.width}x{frame.height}")


async def brighten(client: AsyncClient, camera: str) -> None:
    async with client.lock(camera, wait=10) as lock:
        await client.set(camera, brightness=10)
        print(f"{camera}: brighter, under lock number {lock.fence}")


async def main(cameras: list[str]) -> None:
    async with AsyncClient() as client:
        await asyncio.gather(*(show(client, camera) for camera in cameras), brighten(client, cameras[0]))


try:
    asyncio.run(main(sys.argv[1:] or ["cam0", "cam1"]))
except KeyboardInterrupt:
    sys.exit(130)
except CaptureError as error:
    sys.exit(f"{error.reason}: {error}")
