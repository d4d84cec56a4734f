import { Button } from "@mantine/core";
import { Page } from "../parts/page.tsx";
import { Empty } from "../parts/problem.tsx";
import { Link } from "../router.tsx";
import { t } from "../texts.tsx";

export function NotFoundPage() {
	return (
		<Page title={t("No such page")} narrow>
			<Empty
				title={t("There is nothing at this address.")}
				action={
					<Button component={Link} to="/" variant="default">
						{t("Go to the start")}
					</Button>
				}
			>
				{t("The address may be mistyped, or what it named is not open to you.")}
			</Empty>
		</Page>
	);
}
