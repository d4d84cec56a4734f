/** Bodies of chat requests: the model first, as most clients send it, and text that no compression flatters. */
const WORDS =
	"river stone market window history garden reason letter morning system weather bridge paper music number forest voice engine";

/** Deterministic prose of at least so many bytes. */
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

/** A conversation of which the text is about `promptBytes` long, in messages of up to 8 KB. */
export function chatBody(model: string, promptBytes: number, more: Record<string, unknown> = {}): string {
	const messages: { role: string; content: string }[] = [{ role: "system", content: "You are a helpful assistant." }];
	for (let left = promptBytes; left > 0; left -= 8192) {
		messages.push({ role: messages.length % 2 === 1 ? "user" : "assistant", content: proseOf(Math.min(left, 8192)) });
	}
	return JSON.stringify({ model, messages, max_tokens: 128, ...more });
}

/** The same with a dash in each message, which makes the whole of it text of two bytes a character for this runtime. */
export function typographicBody(model: string, promptBytes: number): string {
	return chatBody(model, promptBytes).replaceAll(/("content":"\S+ )/g, "$1– ");
}

/**
 * What a coding agent sends: parts of text, calls of a function, results that are source code, of which each line ends in
 * an escape. About so many bytes.
 */
export function agentBody(model: string, promptBytes: number): string {
	const source = `${'\tconst found = places.get("name") ?? [];\n'.repeat(10)}\n`.repeat(18);
	const messages: unknown[] = [{ role: "system", content: [{ type: "text", text: proseOf(8192) }] }];
	for (let bytes = 8192, turn = 0; bytes < promptBytes; bytes += 24_576, turn += 1) {
		const id = `call_${turn}`;
		const call = { id, type: "function", function: { name: "read", arguments: JSON.stringify({ path: "a.ts" }) } };
		messages.push(
			{ role: "user", content: [{ type: "text", text: proseOf(8192) }] },
			{ role: "assistant", content: null, tool_calls: [call] },
			{ role: "tool", tool_call_id: id, content: source },
			{ role: "assistant", content: proseOf(8192) },
		);
	}
	return JSON.stringify({ model, messages, max_tokens: 128 });
}

export const SMALL_PROMPT_BYTES = 200;

export function streamBody(model: string, promptBytes = SMALL_PROMPT_BYTES): string {
	return chatBody(model, promptBytes, { stream: true, stream_options: { include_usage: true } });
}
