import type { Endpoint } from "../catalog/request-fields.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import type { CountName, UsageFieldName, UsageFields } from "./usage-fields.ts";

export type Basis = "exact" | "estimated" | "recovered";
export type Ending =
	| "finished"
	| "upstream_failed"
	| "upstream_died"
	| "upstream_silent"
	| "client_left"
	| "shutdown"
	| "crashed";

interface ValueOfType {
	readonly uuid: string;
	readonly text: string;
	readonly "text[]": readonly string[];
	readonly boolean: boolean;
	readonly integer: number;
	readonly bigint: NanoUsd;
	readonly real: number;
	readonly timestamptz: number;
}

interface ClosedLists {
	readonly endpoint: Endpoint;
	readonly basis: Basis;
	readonly ending: Ending;
}

type ValueOf<Name extends UsageFieldName> =
	| (Name extends keyof ClosedLists ? ClosedLists[Name] : ValueOfType[UsageFields[Name]["type"]])
	| (UsageFields[Name] extends { nullable: true } ? null : never);

type Values<Names extends UsageFieldName> = {
	readonly [Name in keyof UsageFields as Name extends Names ? Name : never]: ValueOf<Name>;
};

type Named<Shape> = { [Name in UsageFieldName]: UsageFields[Name] extends Shape ? Name : never }[UsageFieldName];
type OptionalName = Named<{ optional: true }>;
type OptionalValues = { readonly [Name in OptionalName]?: ValueOf<Name> | undefined };
type AdmittedName = Exclude<Named<{ known: "admission" }>, OptionalName>;

export interface AdmittedEvent extends Values<AdmittedName>, OptionalValues {}

/** How a request ended and what it cost, as stored in `usage_event`. */
export interface SettledEvent extends AdmittedEvent, Values<Named<{ known: "end" }>> {}

/** Usage of a request, in whole units. */
export type UsageCounts = Values<CountName>;
