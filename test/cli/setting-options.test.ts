import { expect, test } from "bun:test";
import { type CommandInput, UsageError } from "../../src/cli/command.ts";
import { limitsOf } from "../../src/cli/setting-options.ts";

const givenModels = (models: string): CommandInput => ({
	option: (name) => (name === "models" ? models : undefined),
	required: (name) => name,
	flag: () => false,
	argument: () => "",
	optionalArgument: () => undefined,
});

test.each(["", ",", " , "])(
	"a list of models without a name (%p) is wrong usage, and no key for all of them",
	(models) => {
		expect(() => limitsOf(givenModels(models))).toThrow(UsageError);
	},
);

test("all models are said so; names stand between commas", () => {
	expect(limitsOf(givenModels("all"))).toEqual({ models: null });
	expect(limitsOf(givenModels("a, b"))).toEqual({ models: ["a", "b"] });
});
