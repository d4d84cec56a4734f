const LOOK_MS = 5;
const LOOK_MS_MAX = 25;

/** Deadline of waits on a busy machine. Below a test's timeout, so that the error names the missing event. */
const DEADLINE_MS = 25_000;

/** Resolves when `condition` holds. After the deadline throws an error that names `what`. */
export async function waitFor(
	condition: () => boolean | Promise<boolean>,
	what: string,
	deadlineMs = DEADLINE_MS,
): Promise<void> {
	const beganAt = performance.now();
	while (!(await condition())) {
		const waitedMs = performance.now() - beganAt;
		if (waitedMs > deadlineMs) throw new Error(`waited ${deadlineMs} ms in vain for ${what}`);
		// Polls less often the longer it waits, because most conditions query a database or a server.
		await Bun.sleep(Math.min(LOOK_MS_MAX, LOOK_MS + waitedMs / 20));
	}
}

/** Milliseconds since 1970 with fractions, monotonic and equal in all processes of the machine. */
export function nowMs(): number {
	return performance.timeOrigin + performance.now();
}

/** Returns this process's processor time, which does not depend on other load of the machine. */
export function cpuMs(): number {
	const { user, system } = process.cpuUsage();
	return (user + system) / 1000;
}
