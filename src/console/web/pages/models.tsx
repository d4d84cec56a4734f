import { TextInput } from "@mantine/core";
import { useState } from "react";
import { api } from "../api.ts";
import { ModelTable } from "../parts/model-table.tsx";
import { Page, Panel } from "../parts/page.tsx";
import { useResource } from "../resource.ts";

export default function ModelsPage() {
	const models = useResource("models", api.models);
	const [search, setSearch] = useState("");
	const wanted = search.trim().toLowerCase();
	const rows = models.data?.items.filter((model) =>
		`${model.id} ${model.name} ${model.kind}`.toLowerCase().includes(wanted),
	);
	return (
		<Page title="Models" lead="A rate that is listed does not say that the model is connected: the state does.">
			<Panel
				flush
				title="Catalogue"
				aside={
					<TextInput
						size="xs"
						aria-label="Search models"
						placeholder="Search, press /"
						data-search
						value={search}
						onChange={(event) => setSearch(event.currentTarget.value)}
					/>
				}
			>
				<ModelTable rows={rows} error={models.error} retry={() => void models.reload()} searched={wanted !== ""} />
			</Panel>
		</Page>
	);
}
