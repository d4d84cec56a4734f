/**
 * Bodies of chat requests: with the model first, as most clients send it, and text that compresses like ordinary text.
 */
const WORDS =
	"river stone market window history garden reason letter morning system weather bridge paper music number forest voice engine";

/** Deterministic prose of at least `bytes`. */
function proseOf(bytes: number): string {
	const words = WORDS.split(" ");
	let seed = 12_345;
	let text = "";
	while (text.length < bytes) {
		seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
		text += `${words[seed % words.length]} `;
		if (seed % 97 === 0) text += "\n";
	}
	return text;
}

/** A conversation with about `promptBytes` of text in messages of up to 8 KB. */
export function chatBody(model: string, promptBytes: number, more: Record<string, unknown> = {}): string {
	const messages: { role: string; content: string }[] = [{ role: "system", content: "You are a helpful assistant." }];
	for (let left = promptBytes; left > 0; left -= 8192) {
		messages.push({ role: messages.length % 2 === 1 ? "user" : "assistant", content: proseOf(Math.min(left, 8192)) });
	}
	return JSON.stringify({ model, messages, max_tokens: 128, ...more });
}

export const SMALL_PROMPT_BYTES = 200;

export function streamBody(model: string, promptBytes = SMALL_PROMPT_BYTES): string {
	return chatBody(model, promptBytes, { stream: true, stream_options: { include_usage: true } });
}
