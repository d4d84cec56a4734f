const NOTHING = new Uint8Array();

/** Changes pieces as they pass. One may come out empty, and the rest with the next one or at the end. */
export interface Passing {
	/** A body of this process may come as text, whatever its type says. */
	pass(piece: Uint8Array | string): Uint8Array;
	/** What is left when there is no more. */
	end(): Uint8Array;
}

/**
 * A body that is passed on as it comes, or as `passing` has it. `onEnd` is called once, whichever way it ends. A source that
 * breaks breaks the copy too: the reader must see that something is missing. A reader that goes away ends the source.
 */
export function passedBody(
	body: ReadableStream<Uint8Array>,
	onEnd: () => void,
	passing?: Passing,
): ReadableStream<Uint8Array> {
	const reader = body.getReader();
	let over = false;
	const end = () => {
		if (over) return;
		over = true;
		onEnd();
	};
	const close = (controller: ReadableStreamDefaultController<Uint8Array>) => {
		const rest = passing?.end() ?? NOTHING;
		if (rest.length > 0) controller.enqueue(rest);
		end();
		controller.close();
	};
	return new ReadableStream<Uint8Array>({
		async pull(controller) {
			try {
				// Nobody pulls again for what came out empty.
				for (let passed: Uint8Array = NOTHING; passed.length === 0; ) {
					const { done, value } = await reader.read();
					if (done) return close(controller);
					passed = passing?.pass(value) ?? value;
					if (passed.length > 0) controller.enqueue(passed);
				}
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
