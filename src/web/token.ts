import { useState } from "react";

/**
 * Token of one attempt. Retries send it again, so that the attempt has one effect. 32 hex digits; `randomUUID` is
 * missing over plain HTTP.
 */
export const newToken = (): string =>
	Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Sends a form with a token. After a lost response, the same content is sent with the same token. */
export interface Attempt {
	send<T>(asked: object, act: (token: string) => Promise<T>): Promise<T>;
}

export function createAttempt(): Attempt {
	/** Tokens of requests without a response, by content, so that another request in between changes nothing. */
	const unanswered = new Map<string, string>();
	return {
		async send(asked, act) {
			const text = JSON.stringify(asked);
			const token = unanswered.get(text) ?? newToken();
			unanswered.set(text, token);
			const made = await act(token);
			// After a response the same content is a new attempt.
			if (unanswered.get(text) === token) unanswered.delete(text);
			return made;
		},
	};
}

export const useAttempt = (): Attempt => useState(createAttempt)[0];
