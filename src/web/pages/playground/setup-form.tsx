import { NumberInput, Textarea } from "@mantine/core";
import type { ModelView } from "../../api.ts";
import { LinkButton } from "../../parts/form.tsx";
import { inSentence, t } from "../../texts.tsx";
import { type ChatSetup, readSchema, readTools } from "./conversation.ts";

const EXAMPLE_TOOLS = `[
  {
    "type": "function",
    "function": {
      "name": "get_weather",
      "description": "The weather in a town, now",
      "parameters": {
        "type": "object",
        "properties": { "town": { "type": "string" } },
        "required": ["town"]
      }
    }
  }
]`;

const EXAMPLE_SCHEMA = `{
  "type": "object",
  "properties": {
    "title": { "type": "string" },
    "tags": { "type": "array", "items": { "type": "string" } }
  },
  "required": ["title", "tags"],
  "additionalProperties": false
}`;

const NUMBERS = [
	{ name: "temperature", param: "temperature", label: t("Temperature"), min: 0, max: 2, step: 0.1, decimalScale: 2 },
	{ name: "topP", param: "top_p", label: t("Top p"), min: 0, max: 1, step: 0.05, decimalScale: 2 },
	{ name: "maxTokens", param: "max_tokens", label: t("Maximum tokens"), min: 1, max: 1_000_000, decimalScale: 0 },
] as const;

/** Form of the parameters that all chosen models support. */
export function SetupForm(props: {
	models: readonly ModelView[];
	setup: ChatSetup;
	onChange: (setup: ChatSetup) => void;
}) {
	const { setup, onChange, models } = props;
	const takes = (name: string) => models.length > 0 && models.every(({ parameters }) => parameters.includes(name));
	const set = (changes: Partial<ChatSetup>) => onChange({ ...setup, ...changes });
	return (
		<>
			<Textarea
				label={t("System prompt")}
				autosize
				minRows={2}
				maxRows={6}
				value={setup.system}
				onChange={(event) => set({ system: event.currentTarget.value })}
			/>
			{NUMBERS.filter(({ param }) => param === "max_tokens" || takes(param)).map(({ name, label, ...range }) => (
				<NumberInput
					key={name}
					label={label}
					placeholder={name === "maxTokens" ? "" : t("Model default")}
					allowNegative={false}
					{...range}
					max={name === "maxTokens" ? Math.min(range.max, ...models.map((model) => model.maxOutputTokens)) : range.max}
					value={setup[name]}
					onValueChange={({ value }) => set({ [name]: value })}
				/>
			))}
			{takes("tools") && (
				<JsonField
					label={t("Tools")}
					hint={t("You enter the results of tool calls")}
					example={EXAMPLE_TOOLS}
					value={setup.tools}
					problem={readTools(setup.tools).problem}
					onChange={(tools) => set({ tools })}
				/>
			)}
			{takes("response_format") && (
				<JsonField
					label={t("Response schema")}
					hint={t("Responses must match this JSON schema")}
					example={EXAMPLE_SCHEMA}
					value={setup.schema}
					problem={readSchema(setup.schema).problem}
					onChange={(schema) => set({ schema })}
				/>
			)}
		</>
	);
}

function JsonField(props: {
	label: string;
	hint: string;
	example: string;
	value: string;
	problem: string | undefined;
	onChange: (value: string) => void;
}) {
	return (
		<div>
			<Textarea
				label={props.label}
				description={props.hint}
				error={props.problem}
				placeholder={t("None")}
				className="json-field"
				spellCheck={false}
				autosize
				minRows={1}
				maxRows={14}
				value={props.value}
				onChange={(event) => props.onChange(event.currentTarget.value)}
			/>
			{props.value === "" && (
				<LinkButton
					aria-label={t("Use an example for {label}", { label: inSentence(props.label) })}
					onClick={() => props.onChange(props.example)}
				>
					{t("Use an example")}
				</LinkButton>
			)}
		</div>
	);
}
