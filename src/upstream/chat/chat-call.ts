import type { Model } from "../../catalog/model.ts";
import type { CallContext } from "../call/attempt.ts";
import type { StreamCall } from "../call/stream.ts";
import type { StreamWire } from "../call/stream-wire.ts";
import type { PostSender, UnaryCall, UnaryPost } from "../call/unary.ts";
import { fieldsForChoice, type GenerationRequest, generationBody, joinReplies } from "../generation-request.ts";
import type { Prompt } from "../prompt.ts";
import type { Replica } from "../replicas/replica.ts";
import { gatherText } from "../text-reader.ts";
import { parseJson } from "../wire-value.ts";
import type { ChatChunk, ChatReply } from "./chat-answer.ts";
import { ChatReader } from "./chat-reader.ts";
import { choiceOfChunks, chunkOfReply, readChatReply, readChatReplyInTurns } from "./chat-whole.ts";

export interface ChatCallInput extends Pick<GenerationRequest, "fields" | "prompt"> {
	readonly maxOutputTokens: number;
	readonly choices: number;
}

const PATH = "/chat/completions";

const WIRE: StreamWire<ChatChunk> = {
	path: PATH,
	reader: (dialect) => new ChatReader(dialect),
	whole(text, dialect) {
		const reply = readChatReply(parseJson(text), dialect);
		return { chunk: chunkOfReply(reply), usage: reply.usage };
	},
};

const wireOf = (choices: number): StreamWire<ChatChunk> =>
	choices === 1 ? WIRE : { ...WIRE, reader: (dialect) => new ChatReader(dialect, choices) };

const gatherOne = () => gatherText(WIRE, choiceOfChunks);
/** A separate function: a closure in the caller would cost an object per request. */
const gatherOf = (n: number) => (n === 1 ? gatherOne : gatherSeveral(n));
const gatherSeveral = (n: number) => () => gatherText(wireOf(n), choiceOfChunks);

export function chatStream(model: Model, context: CallContext, input: ChatCallInput): StreamCall<ChatChunk> {
	const { fields, prompt, choices: n } = input;
	const { parameters } = model;
	let maxOutputTokens: number | undefined = input.maxOutputTokens;
	return {
		context,
		wire: wireOf(n),
		body(replica) {
			const { cacheSalt } = context;
			const request = { kind: "chat", fields, prompt, maxOutputTokens, n, parameters, cacheSalt } as const;
			return generationBody(replica, request, true);
		},
		dropLimit() {
			const hadLimit = maxOutputTokens !== undefined;
			maxOutputTokens = undefined;
			return hadLimit;
		},
		over: () => prompt.letGo(),
	};
}

export function unstreamedChat(model: Model, context: CallContext, input: ChatCallInput): UnaryCall<ChatReply> {
	return new WholeChat(model, context, input);
}

/** A class, because it allocates less than closures and every request creates one. */
class WholeChat implements UnaryCall<ChatReply>, GenerationRequest {
	readonly context: CallContext;
	readonly kind = "chat";
	readonly fields: GenerationRequest["fields"];
	readonly prompt: Prompt;
	maxOutputTokens: number | undefined;
	readonly n: number;
	readonly parameters: ReadonlySet<string>;
	readonly cacheSalt: string | undefined;

	constructor(model: Model, context: CallContext, input: ChatCallInput) {
		this.context = context;
		this.fields = input.fields;
		this.prompt = input.prompt;
		this.maxOutputTokens = input.maxOutputTokens;
		this.n = input.choices;
		this.parameters = model.parameters;
		this.cacheSalt = context.cacheSalt;
	}

	run(ask: PostSender, replica: Replica): Promise<ChatReply> {
		if (this.n > 1 && !replica.dialect.unaryUsageCoversChoices) return this.#oneByOne(ask, replica);
		const gather = gatherOf(this.n);
		return ask.post({ path: PATH, body: generationBody(replica, this, false), read: readWhole, gather });
	}

	dropLimit(): boolean {
		const hadLimit = this.maxOutputTokens !== undefined;
		this.maxOutputTokens = undefined;
		return hadLimit;
	}

	async #oneByOne(ask: PostSender, replica: Replica): Promise<ChatReply> {
		const replies: ChatReply[] = [];
		for (let index = 0; index < this.n; index += 1) {
			const body = generationBody(replica, { ...this, n: 1, fields: fieldsForChoice(this.fields, index) }, false);
			replies.push(await ask.post({ path: PATH, body, read: readWhole, gather: gatherOne }));
		}
		return joinReplies(replies, this.n);
	}
}

const readWhole: UnaryPost<ChatReply>["read"] = (parsed, _headers, dialect) => readChatReplyInTurns(parsed, dialect);
