import { expect, test } from "bun:test";
import { residentBytes } from "../bench/process-usage.ts";
import { streamBody } from "../bench/prompts.ts";
import type { RawConnection } from "../bench/raw-connection.ts";
import { chatRequestBytes, openConnection } from "../bench/raw-connection.ts";
import { untilEnd } from "../support/at-end.ts";
import { waitFor } from "../support/wait.ts";
import { startSoakService } from "./service.ts";

const READERS = 20;
/** Of the 2,100 MB that the upstream has for them: what is read at once becomes garbage that a young heap lets lie. */
const GROWTH_BYTES_MAX = 512 * 1024 * 1024;
/** In the second half of the time: nothing is read any more. */
const LATE_GROWTH_BYTES_MAX = 16 * 1024 * 1024;
const HALF_MS = 2_000;

/** Memory and files are read from /proc. */
const onLinux = test.skipIf(process.platform !== "linux");

const service = untilEnd(await startSoakService());

onLinux(
	"readers that take nothing of a long stream cost bounded memory, and hanging up ends their streams",
	async () => {
		const { gateway, upstream, database } = service;
		const before = residentBytes(gateway.pids());
		const request = chatRequestBytes(gateway, service.secrets[0] as string, streamBody("flood"));
		const begun: Promise<void>[] = [];
		const readers: RawConnection[] = [];
		for (let index = 0; index < READERS; index++) {
			const first = Promise.withResolvers<void>();
			const reader = await openConnection(gateway.port, {
				body() {
					reader.pause();
					first.resolve();
				},
				answered: () => first.reject(new Error("the stream ended")),
				broke: (why) => first.reject(new Error(why)),
			});
			reader.send(request);
			readers.push(reader);
			begun.push(first.promise);
		}
		await Promise.all(begun);
		// Not waits for something to happen: memory that grew without a bound would show within this time.
		await Bun.sleep(HALF_MS);
		const half = residentBytes(gateway.pids());
		await Bun.sleep(HALF_MS);
		const end = residentBytes(gateway.pids());
		expect(upstream.count().open).toBe(READERS);
		expect(end - before).toBeLessThan(GROWTH_BYTES_MAX);
		expect(end - half).toBeLessThan(LATE_GROWTH_BYTES_MAX);

		for (const reader of readers) reader.close();
		await waitFor(() => upstream.count().open === 0, "the upstream's streams to be closed");
		expect((await database.books()).reconciled).toBe(true);
	},
	60_000,
);
