/**
 * Passes a body on as it arrives. `onEnd` is called once, however it ends. The reader gets an error of the source, so
 * that a partial body is recognisable. A reader that cancels ends the source; so does `signal`, and the reader gets its
 * reason.
 */
export function forwardBody(
	body: ReadableStream<Uint8Array>,
	onEnd: () => void,
	signal?: AbortSignal,
): ReadableStream<Uint8Array> {
	const reader = body.getReader();
	let over = false;
	const end = () => {
		if (over) return;
		over = true;
		onEnd();
	};
	return new ReadableStream<Uint8Array>({
		start(controller) {
			signal?.addEventListener("abort", () => {
				if (over) return;
				end();
				controller.error(signal.reason);
				void reader.cancel(signal.reason).catch(() => {});
			});
		},
		async pull(controller) {
			try {
				const { done, value } = await reader.read();
				if (over) return;
				if (!done) return controller.enqueue(value);
				end();
				controller.close();
			} catch (error) {
				if (over) return;
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

/** True if no connection was established, so that nothing was sent. */
export function isConnectFailure(error: unknown): boolean {
	const { code } = error as { code?: unknown };
	return code === "ENOENT" || code === "ECONNREFUSED" || code === "ConnectionRefused";
}
