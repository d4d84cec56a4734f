/**
 * A body that is passed on as it comes. `onEnd` is called once, whichever way it ends. A source that breaks breaks the copy
 * too: the reader must see that something is missing. A reader that goes away ends the source.
 */
export function passedBody(body: ReadableStream<Uint8Array>, onEnd: () => void): ReadableStream<Uint8Array> {
	const reader = body.getReader();
	let over = false;
	const end = () => {
		if (over) return;
		over = true;
		onEnd();
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
		async cancel(reason) {
			end();
			await reader.cancel(reason);
		},
	});
}

/** Whether a connection could not be made at all, so that nothing was sent. */
export function isAbsent(error: unknown): boolean {
	const { code } = error as { code?: unknown };
	return code === "ENOENT" || code === "ECONNREFUSED" || code === "ConnectionRefused";
}
