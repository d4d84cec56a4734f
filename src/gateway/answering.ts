import { newRequestId } from "../admission/admission.ts";
import { Fault } from "../base/fault.ts";
import type { KeyEntry } from "../keys/key-entry.ts";
import type { Endpoint } from "../ledger/event.ts";
import type { ChatDeps } from "./chat/chat.ts";
import { faultOf } from "./error-body.ts";
import type { Connection } from "./exchange.ts";
import { refusal } from "./refusal.ts";

/** A request from its first moment on. */
export interface Begun {
	readonly uuid: string;
	readonly requestId: string;
	readonly endpoint: Endpoint;
	/** For the id of the answer. */
	readonly hex: string;
	/** Monotonic. */
	readonly startedMs: number;
	readonly createdS: number;
	readonly key: KeyEntry;
	/** The model as asked for, and whether it was admitted: for the record of a refusal. Filled in by `work`. */
	asked: string | undefined;
	admitted: boolean;
}

export interface Asked {
	readonly endpoint: Endpoint;
	/** The field that a prompt which is too long is in. */
	readonly promptField: string;
}

/** Authenticates, runs `work` and turns whatever it throws into an answer. */
export async function answering(
	deps: ChatDeps,
	connection: Connection,
	{ endpoint, promptField }: Asked,
	work: (begun: Begun) => Promise<Response>,
): Promise<Response> {
	const { uuid, requestId, hex } = newRequestId();
	const startedMs = deps.clock.monotonicMs();
	let begun: Begun | undefined;
	try {
		const known = deps.authenticate(connection);
		const key = known instanceof Promise ? await known : known;
		const createdS = Math.floor(deps.clock.wallMs() / 1000);
		begun = { uuid, requestId, endpoint, hex, startedMs, createdS, key, asked: undefined, admitted: false };
		return await work(begun);
	} catch (error) {
		const fault = withPromptField(faultOf(error), promptField);
		const { key, asked, admitted = false } = begun ?? {};
		return refusal(deps, connection, { uuid, requestId, endpoint, key, asked, admitted }, fault, error);
	}
}

/** A server that refuses a prompt as too long does not say where this endpoint has it. */
function withPromptField(fault: Fault, param: string): Fault {
	if (fault.code !== "context_length_exceeded" || fault.param === param) return fault;
	const { code, message, cause } = fault;
	return new Fault(code, message, { param, cause, ...(fault.private === undefined ? {} : { private: fault.private }) });
}
