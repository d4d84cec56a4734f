import { nanoUsd } from "../money/nano-usd.ts";
import type { OperatorCost } from "./model.ts";
import { readRateField } from "./rates-section.ts";
import type { YamlField, YamlReader } from "./yaml-reader.ts";

const PICO_PER_NANO = 1000;
const COST_FIELDS = ["replica_hour", "input", "output"];

/**
 * Reads `cost:` of a model: the operator's own cost, as decimal strings, which customers do not see. `replica_hour` is
 * USD per replica and hour, `input` and `output` are USD per million tokens.
 */
export function readCost(reader: YamlReader, field: YamlField | undefined): OperatorCost | undefined {
	const map = reader.map(field, COST_FIELDS);
	if (field === undefined || map === undefined) return undefined;
	const of = (name: string, perMillion: boolean) => {
		const given = map.get(name);
		return given === undefined ? 0 : (readRateField(reader, given, perMillion) ?? 0);
	};
	if (COST_FIELDS.every((name) => map.get(name) === undefined))
		reader.report(field, `needs at least one of ${COST_FIELDS.join(", ")}`);
	const replicaHour = Math.round(of("replica_hour", false) / PICO_PER_NANO);
	return Object.freeze({ replicaHour: nanoUsd(replicaHour), input: of("input", true), output: of("output", true) });
}
