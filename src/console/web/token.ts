/**
 * Of one attempt, the same however often it is sent: one whose answer was lost is not carried out again. 32 hex digits;
 * `randomUUID` is not there where the page came over plain HTTP.
 */
export const newToken = (): string =>
	Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
