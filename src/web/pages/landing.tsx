import { Group, SimpleGrid, Skeleton, Stack, Text, Title } from "@mantine/core";
import { brand } from "../brand.ts";
import { CodeTabs } from "../parts/code.tsx";
import { ActButton } from "../parts/form.tsx";
import { ModelTable, PriceCalculator } from "../parts/model-table.tsx";
import { Panel } from "../parts/page.tsx";
import { Link } from "../router.tsx";
import { useModels, useSession } from "../session.tsx";
import { chatSnippets } from "../snippets/chat.ts";
import { showUsd, t } from "../texts.tsx";

const HEADLINE = brand.headline ?? t("Open models with the SDK you already use");
const LEAD =
	brand.lead ??
	t(
		"Change the base URL, the API key and the model. Credit is prepaid, each request is charged by its actual tokens, and no key spends more than its cap.",
	);

export default function LandingPage() {
	const { config } = useSession();
	const models = useModels();
	const least = showUsd(config.topUpMinNanoUsd);
	const facts = {
		[t("Prepaid")]: t("Top-ups start at {least}. Unused credit remains available.", { least }),
		[t("Exact")]: t("The request log shows the tokens, rates and cost of every request."),
		[t("Capped")]: t(
			"Each key can have a spending cap and a list of allowed models. A key never exceeds its cap, even under load.",
		),
		[t("Revocable")]: t("A revoked key stops on all instances, and the console shows when."),
	};
	const example = models.data?.items.find((model) => model.status === "connected" && model.modes.includes("chat"));
	return (
		<div className="page">
			<title>{`${brand.name}: ${HEADLINE}`}</title>
			<SimpleGrid cols={{ base: 1, md: 2 }} spacing={40} py="lg" className="hero">
				<Stack justify="center">
					<Title fz={32}>{HEADLINE}</Title>
					<Text c="dimmed" fz={16}>
						{LEAD}
					</Text>
					<Group gap="xs">
						{config.signUp && <ActButton size="sm" look="main" label={t("Sign up")} to="/sign-up" />}
						<ActButton size="sm" label={t("Quick start")} to="/docs" />
					</Group>
				</Stack>
				<CodeTabs
					snippets={chatSnippets({
						baseUrl: config.baseUrl,
						model: example?.id ?? "MODEL_ID",
						messages: [{ role: "user", content: t("Hello!") }],
					})}
				/>
			</SimpleGrid>
			<Panel title={t("Estimate your cost")}>
				{models.data ? <PriceCalculator models={models.data.items} /> : <Skeleton height={280} />}
			</Panel>
			<Panel title={t("Models and rates")} aside={<Link to="/models">{t("All details")}</Link>} flush>
				<ModelTable rows={models.data?.items} error={models.error} retry={() => void models.reload()} />
			</Panel>
			<Panel title={t("How access works")}>
				<SimpleGrid component="ul" className="bare" minColWidth="min(100%, 240px)" autoFlow="auto-fit">
					{Object.entries(facts).map(([title, text]) => (
						<li key={title}>
							<Text fw={600}>{title}</Text>
							{text}
						</li>
					))}
				</SimpleGrid>
			</Panel>
		</div>
	);
}
