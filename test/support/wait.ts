const LOOK_MS = 5;
const LOOK_MS_MAX = 25;

/** A machine that tests beside other work is slow, and only a failure waits so long. Below the limit of a test, so that it names what did not come. */
const DEADLINE_MS = 25_000;

/** Resolves as soon as `condition` holds; throws, naming `what`, if it does not within the deadline. */
export async function waitFor(
	condition: () => boolean | Promise<boolean>,
	what: string,
	deadlineMs = DEADLINE_MS,
): Promise<void> {
	const beganAt = performance.now();
	while (!(await condition())) {
		const waitedMs = performance.now() - beganAt;
		if (waitedMs > deadlineMs) throw new Error(`waited ${deadlineMs} ms in vain for ${what}`);
		// Most ask a database or a server, which is others' time as well: what takes long is asked for more rarely.
		await Bun.sleep(Math.min(LOOK_MS_MAX, LOOK_MS + waitedMs / 20));
	}
}

/** Processor time of this process so far, which other load and stalls of the machine do not change. */
export function cpuMs(): number {
	const { user, system } = process.cpuUsage();
	return (user + system) / 1000;
}
