import { useState } from "react";

/**
 * Of one attempt, the same however often it is sent: one whose answer was lost is not carried out again. 32 hex digits;
 * `randomUUID` is not there where the page came over plain HTTP.
 */
export const newToken = (): string =>
	Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Sends what a form asks for, with a token: the same one as before, where the same was asked for and its answer was lost. */
export interface Attempt {
	send<T>(asked: object, act: (token: string) => Promise<T>): Promise<T>;
}

export function createAttempt(): Attempt {
	/** By what was asked for. Who tries something else meanwhile, and then that again, has asked for it once. */
	const unanswered = new Map<string, string>();
	return {
		async send(asked, act) {
			const text = JSON.stringify(asked);
			const token = unanswered.get(text) ?? newToken();
			unanswered.set(text, token);
			const made = await act(token);
			// Whoever asks for the same once more wants another one.
			if (unanswered.get(text) === token) unanswered.delete(text);
			return made;
		},
	};
}

export const useAttempt = (): Attempt => useState(createAttempt)[0];
