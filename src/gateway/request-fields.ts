/** What the request bodies of all endpoints have in common: absent is null, unknown fields pass by the deployment's list. */
import type { Static, TSchema } from "@sinclair/typebox";
import { Type } from "@sinclair/typebox";
import type { TypeCheck } from "@sinclair/typebox/compiler";
import { Fault } from "../base/fault.ts";
import type { Model } from "../catalog/model.ts";
import { paramOf } from "./chat/chat-request.ts";

/** Absent and null are the same everywhere in this interface. */
export const optional = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

/** Fault invalid_request, naming the first field that is wrong. */
export function assertBody<T extends TSchema>(check: TypeCheck<T>, body: unknown): asserts body is Static<T> {
	if (check.Check(body)) return;
	const error = check.Errors(body).First();
	const param = error ? paramOf(error.path) : null;
	throw new Fault(
		"invalid_request",
		param ? `\`${param}\` is missing or has a value that is not allowed.` : "The request is malformed.",
		{ param },
	);
}

/** The optional fields of a request, as far as its deployment honours them. */
export interface HonouredFields {
	readonly fields: Readonly<Record<string, unknown>>;
	/** Fields that the deployment does not honour. */
	readonly ignored: readonly string[];
}

/**
 * `own` are the fields that the endpoint reads itself; those of them in `unheard` count as not honoured all the same.
 * Fault unsupported_parameter where the deployment refuses what it does not honour.
 */
export function honouredFields(
	body: Readonly<Record<string, unknown>>,
	model: Model,
	own: ReadonlySet<string>,
	unheard: readonly string[] = [],
): HonouredFields {
	const fields: Record<string, unknown> = {};
	const ignored: string[] = [];
	for (const name in body) {
		const value = body[name];
		if (value === null || value === undefined) continue;
		if (own.has(name)) {
			if (unheard.includes(name)) ignored.push(name);
		} else if (model.parameters.has(name)) fields[name] = value;
		else ignored.push(name);
	}
	const refused = ignored[0];
	if (refused !== undefined && model.unsupportedParameters === "reject") {
		throw new Fault("unsupported_parameter", `The model \`${model.id}\` does not support this parameter.`, {
			param: refused.slice(0, 64),
		});
	}
	return { fields, ignored };
}
