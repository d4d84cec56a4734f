const LOOK_MS = 5;
const LOOK_MS_MAX = 25;

/** Deadline of waits on a busy machine, below a test's timeout, so that the error names the missing event. */
const DEADLINE_MS = 25_000;

/** Resolves once `condition` holds; throws, naming `what`, after the deadline. */
export async function waitFor(
	condition: () => boolean | Promise<boolean>,
	what: string,
	deadlineMs = DEADLINE_MS,
): Promise<void> {
	const beganAt = performance.now();
	while (!(await condition())) {
		const waitedMs = performance.now() - beganAt;
		if (waitedMs > deadlineMs) throw new Error(`waited ${deadlineMs} ms in vain for ${what}`);
		// Most conditions query a database or server, so a long wait polls less often.
		await Bun.sleep(Math.min(LOOK_MS_MAX, LOOK_MS + waitedMs / 20));
	}
}

/** Processor time of this process, which other load of the machine does not change. */
export function cpuMs(): number {
	const { user, system } = process.cpuUsage();
	return (user + system) / 1000;
}
