import { useState } from "react";

/**
 * Creates a token of 32 hex digits. Retries send it again, so that the attempt has one effect. `crypto.randomUUID` does
 * not exist on pages over plain HTTP.
 */
export const newToken = (): string =>
	Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Sends a form with a token. After a lost response, a retry with the same content sends the same token. */
export interface RepeatableSend {
	send<T>(asked: object, act: (token: string) => Promise<T>): Promise<T>;
}

export function createAttempt(): RepeatableSend {
	/** Tokens of requests without a response, by content: a request with other content in between keeps them. */
	const unanswered = new Map<string, string>();
	return {
		async send(asked, act) {
			const text = JSON.stringify(asked);
			const token = unanswered.get(text) ?? newToken();
			unanswered.set(text, token);
			const made = await act(token);
			// Once a response arrived, sending the same content again is a new attempt.
			if (unanswered.get(text) === token) unanswered.delete(text);
			return made;
		},
	};
}

export const useAttempt = (): RepeatableSend => useState(createAttempt)[0];
