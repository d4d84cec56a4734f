import { Button, NumberInput, Select, Textarea } from "@mantine/core";
import { useState } from "react";
import { api } from "../api.ts";
import { Page, Panel } from "../parts/page.tsx";
import { Empty, Notice, Problem } from "../parts/problem.tsx";
import { useResource } from "../resource.ts";
import { Link, useQueryState } from "../router.tsx";
import { useAccount } from "../session.tsx";
import type { KeyView, ModelView } from "../views.ts";
import type { ChatSettings } from "./playground-conversation.tsx";
import { Conversation } from "./playground-conversation.tsx";

const START: ChatSettings = { system: "", temperature: "", topP: "", maxTokens: "1024" };

export default function PlaygroundPage() {
	const account = useAccount();
	const [query, change] = useQueryState();
	const models = useResource("models", api.models);
	const keys = useResource(`keys ${account.id}`, () => api.keys(account.id));
	const [settings, setSettings] = useState(START);

	const usable = keys.data?.items.filter((key) => key.state === "active");
	const key = usable?.find((item) => item.id === query.get("key")) ?? usable?.[0];
	const offered = models.data?.items.filter((model) => model.modes.includes("chat") && allows(key, model));
	const model =
		offered?.find((item) => item.id === query.get("model")) ??
		offered?.find((item) => item.status === "connected") ??
		offered?.[0];

	if (usable?.length === 0) {
		return (
			<Page title="Playground">
				<Panel>
					<Empty
						title="A key is needed."
						action={
							<Button component={Link} to="/keys?create=1">
								Create a key
							</Button>
						}
					>
						Requests of the playground are charged to one of your keys, with its cap and its models.
					</Empty>
				</Panel>
			</Page>
		);
	}
	return (
		<Page
			title="Playground"
			lead="Charged to the key that is chosen, like any other request. Nothing that is typed here is stored."
		>
			{models.error && <Problem error={models.error} retry={() => void models.reload()} />}
			{keys.error && <Problem error={keys.error} retry={() => void keys.reload()} />}
			<div className="playground">
				<Conversation apiKey={key} model={model} settings={settings} />
				<Panel title="Request">
					<div className="form">
						<Select
							label="Model"
							data={offered?.map((item) => ({ value: item.id, label: item.name })) ?? []}
							searchable
							allowDeselect={false}
							value={model?.id ?? null}
							onChange={(value) => change({ model: value })}
						/>
						{model?.status === "unavailable" && <Notice kind="warn">This model is not connected right now.</Notice>}
						<Select
							label="Key"
							data={usable?.map((item) => ({ value: item.id, label: `${item.name} …${item.lastFour}` })) ?? []}
							allowDeselect={false}
							value={key?.id ?? null}
							onChange={(value) => change({ key: value })}
						/>
						<Parameters model={model} settings={settings} onChange={setSettings} />
					</div>
				</Panel>
			</div>
		</Page>
	);
}

function allows(key: KeyView | undefined, model: ModelView): boolean {
	return key === undefined || key.models.length === 0 || key.models.includes(model.id);
}

/** Only what the model honours is offered. */
function Parameters(props: {
	model: ModelView | undefined;
	settings: ChatSettings;
	onChange: (settings: ChatSettings) => void;
}) {
	const { settings, onChange } = props;
	const takes = (name: string) => props.model?.parameters.includes(name) ?? false;
	const set = (changes: Partial<ChatSettings>) => onChange({ ...settings, ...changes });
	return (
		<>
			<Textarea
				label="System prompt"
				autosize
				minRows={2}
				maxRows={6}
				value={settings.system}
				onChange={(event) => set({ system: event.currentTarget.value })}
			/>
			{takes("temperature") && (
				<NumberInput
					label="Temperature"
					placeholder="The model's own"
					min={0}
					max={2}
					step={0.1}
					decimalScale={2}
					value={settings.temperature}
					onValueChange={(value) => set({ temperature: value.value })}
				/>
			)}
			{takes("top_p") && (
				<NumberInput
					label="Top p"
					placeholder="The model's own"
					min={0}
					max={1}
					step={0.05}
					decimalScale={2}
					value={settings.topP}
					onValueChange={(value) => set({ topP: value.value })}
				/>
			)}
			<NumberInput
				label="Tokens at most"
				min={1}
				max={props.model?.maxOutputTokens ?? 1_000_000}
				allowDecimal={false}
				value={settings.maxTokens}
				onValueChange={(value) => set({ maxTokens: value.value })}
			/>
		</>
	);
}
