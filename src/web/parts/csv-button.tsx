import { Button } from "@mantine/core";
import { Icon } from "./icons.tsx";

/** Saves what the page shows, and what it leaves out for length, as a file. */
export function CsvButton({ href }: { href: string }) {
	return (
		<Button component="a" href={href} download size="xs" variant="default" leftSection={<Icon name="download" />}>
			CSV
		</Button>
	);
}
