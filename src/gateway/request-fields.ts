/** What the request bodies of all endpoints have in common: absent is null, unknown fields pass by the deployment's list. */
import type { ObjectOptions, Static, TSchema } from "@sinclair/typebox";
import { Type } from "@sinclair/typebox";
import type { TypeCheck } from "@sinclair/typebox/compiler";
import { Fault } from "../base/fault.ts";
import type { Model } from "../catalog/model.ts";
import { bodyProblem } from "./body/body-problem.ts";

/** Absent and null are the same everywhere in this interface. */
export const optional = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

/** A record of texts looks at no member whose name has a line end in it. */
const ANY_NAME = Type.String({ pattern: "^[\\s\\S]*$" });

/** An object of any names, whose members are all so. (As `additionalProperties` its check would make a scope for each request.) */
export const mapOf = <T extends TSchema>(member: T, options: ObjectOptions = {}) =>
	Type.Record(ANY_NAME, member, options);

/** The model's name, before anything else is known. Fault invalid_request. */
export function modelNameOf(body: Readonly<Record<string, unknown>>): string {
	if (typeof body.model !== "string" || body.model === "")
		throw new Fault("invalid_request", "`model` must be the ID of a model: see GET /v1/models.", { param: "model" });
	return body.model;
}

/** Fault invalid_request, naming the first field that is wrong. */
export function assertBody<T extends TSchema>(check: TypeCheck<T>, body: unknown): asserts body is Static<T> {
	if (check.Check(body)) return;
	const { param, message } = bodyProblem(check.Errors(body));
	throw new Fault("invalid_request", message, { param });
}

/** Fault invalid_request for options of a stream where there is none. */
export function assertStreamOptions(body: { stream?: boolean | null; stream_options?: object | null }): void {
	if (!body.stream_options || body.stream === true) return;
	throw new Fault("invalid_request", "`stream_options` is only allowed when `stream` is true.", {
		param: "stream_options",
	});
}

/** Whether the deployment can be told how much to generate. */
export function limitsOutput(model: Model): boolean {
	return model.parameters.has("max_tokens") || model.parameters.has("max_completion_tokens");
}

/** The optional fields of a request, as far as its deployment honours them. */
export interface HonouredFields {
	readonly fields: Readonly<Record<string, unknown>>;
	/** Fields that the deployment does not honour. */
	readonly ignored: readonly string[];
}

export const NO_FIELDS: readonly string[] = [];

/**
 * `own` are the fields that the endpoint reads itself; those of them in `unsupported` count as not honoured all the
 * same.
 * Fault unsupported_parameter where the deployment refuses what it does not honour.
 */
export function honouredFields(
	body: Readonly<Record<string, unknown>>,
	model: Model,
	own: ReadonlySet<string>,
	unsupported: readonly string[] = NO_FIELDS,
): HonouredFields {
	const fields: Record<string, unknown> = {};
	let ignored: string[] | undefined;
	for (const name in body) {
		const value = body[name];
		if (value === null || value === undefined) continue;
		const isOwn = own.has(name);
		if (isOwn ? !unsupported.includes(name) : model.parameters.has(name)) {
			if (!isOwn) fields[name] = value;
		} else if (ignored === undefined) ignored = [name];
		else ignored.push(name);
	}
	const refused = ignored?.[0];
	if (refused !== undefined && model.unsupportedParameters === "reject") {
		throw new Fault("unsupported_parameter", `The model \`${model.id}\` does not support this parameter.`, {
			param: refused.slice(0, 64),
		});
	}
	return { fields, ignored: ignored ?? NO_FIELDS };
}
