/**
 * Passes a body on as it arrives. `onEnd` is called once, however it ends. An error of the source reaches the reader,
 * so that a partial body is recognisable. A reader that cancels ends the source.
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

/** Whether no connection was made, so that nothing was sent. */
export function isAbsent(error: unknown): boolean {
	const { code } = error as { code?: unknown };
	return code === "ENOENT" || code === "ECONNREFUSED" || code === "ConnectionRefused";
}
