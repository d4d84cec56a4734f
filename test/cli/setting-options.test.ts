import { expect, test } from "bun:test";
import { type CommandInput, UsageError } from "../../src/cli/command.ts";
import { parseLimits } from "../../src/cli/setting-options.ts";

const givenModels = (models: string): CommandInput => ({
	option: (name) => (name === "models" ? models : undefined),
	required: (name) => name,
	flag: () => false,
	argument: () => "",
	optionalArgument: () => undefined,
});

test.each(["", ",", " , "])("an empty list of models (%p) is refused as wrong usage", (models) => {
	expect(() => parseLimits(givenModels(models))).toThrow(UsageError);
});

test("the option for models takes `all` or a list of models separated by commas", () => {
	expect(parseLimits(givenModels("all"))).toEqual({ models: null });
	expect(parseLimits(givenModels("a, b"))).toEqual({ models: ["a", "b"] });
});
