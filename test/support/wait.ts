/** Resolves as soon as `condition` holds; throws, naming `what`, if it does not within the deadline. */
export async function waitFor(
	condition: () => boolean | Promise<boolean>,
	what: string,
	deadlineMs = 10_000,
): Promise<void> {
	const giveUpAt = performance.now() + deadlineMs;
	while (!(await condition())) {
		if (performance.now() > giveUpAt) throw new Error(`waited ${deadlineMs} ms in vain for ${what}`);
		await Bun.sleep(5);
	}
}
