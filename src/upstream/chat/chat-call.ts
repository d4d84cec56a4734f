import type { Model } from "../../catalog/model.ts";
import type { CallContext } from "../call/attempt.ts";
import type { StreamCall } from "../call/stream.ts";
import type { StreamWire } from "../call/stream-wire.ts";
import type { Asker, UnaryCall, UnaryPost } from "../call/unary.ts";
import { type GenerationRequest, generationText } from "../generation-request.ts";
import type { Replica } from "../replicas/replica.ts";
import { parseJson } from "../wire-value.ts";
import type { ChatChunk, ChatReply } from "./chat-answer.ts";
import { collectChat } from "./chat-collect.ts";
import { createChatReader } from "./chat-reader.ts";
import { chunkOfReply, readChatReply, readChatReplyInTurns } from "./chat-whole.ts";

/** One customer's chat request on its way to a replica. */
export interface ChatCall extends CallContext, Pick<GenerationRequest, "fields" | "prompt" | "outputLimit" | "n"> {}

const PATH = "/chat/completions";

const WIRE: StreamWire<ChatChunk> = {
	path: PATH,
	reader: createChatReader,
	whole(text, dialect) {
		const reply = readChatReply(parseJson(text), dialect);
		return { chunk: chunkOfReply(reply), usage: reply.usage };
	},
};

/** A chat whose answer is streamed. */
export function chatStream(model: Model, call: ChatCall): StreamCall<ChatChunk> {
	return {
		context: call,
		wire: WIRE,
		body: (replica) => textOf(replica, model, call, true),
		over: () => call.prompt.letGo(),
	};
}

/** A chat whose answer comes in one piece. */
export function chatWhole(model: Model, call: ChatCall): UnaryCall<ChatReply> {
	return new WholeChat(model, call);
}

/** A class, since there is one for each request. */
class WholeChat implements UnaryCall<ChatReply> {
	readonly context: ChatCall;
	readonly #model: Model;

	constructor(model: Model, call: ChatCall) {
		this.context = call;
		this.#model = model;
	}

	run(ask: Asker, replica: Replica): Promise<ChatReply> {
		// Where a whole answer's usage leaves choices out, the stream's does not.
		const streamed = this.context.n > 1 && !replica.dialect.unaryUsageCoversChoices;
		const body = textOf(replica, this.#model, this.context, streamed);
		if (streamed) return collectChat(ask.stream(WIRE, body));
		return ask.post({ path: PATH, body, read: readWhole });
	}
}

const readWhole: UnaryPost<ChatReply>["read"] = (parsed, _headers, dialect) => readChatReplyInTurns(parsed, dialect);

function textOf(replica: Replica, model: Model, call: ChatCall, stream: boolean): string {
	const { fields, prompt, outputLimit, n } = call;
	const { parameters } = model;
	return generationText(replica, { kind: "chat", fields, prompt, outputLimit, n, stream, parameters });
}
