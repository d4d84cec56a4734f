/**
 * A body that is passed on as it comes. `ended` is called once, whichever way it ends; `left` when who reads it goes
 * away before its end. A source that breaks breaks the copy too: the reader must see that something is missing.
 */
export function passedBody(
	body: ReadableStream<Uint8Array>,
	on: { ended(): void; left(): void },
): ReadableStream<Uint8Array> {
	const reader = body.getReader();
	let over = false;
	const end = () => {
		if (over) return;
		over = true;
		on.ended();
	};
	return new ReadableStream<Uint8Array>({
		async pull(controller) {
			try {
				const { done, value } = await reader.read();
				if (!done) return controller.enqueue(value);
				end();
				controller.close();
			} catch (error) {
				end();
				controller.error(error);
			}
		},
		cancel() {
			end();
			on.left();
		},
	});
}

/** Whether a connection could not be made at all, so that nothing was sent. */
export function isAbsent(error: unknown): boolean {
	const { code } = error as { code?: unknown };
	return code === "ENOENT" || code === "ECONNREFUSED" || code === "ConnectionRefused";
}
