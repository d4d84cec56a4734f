export const projects = {
	People: "Personen",
	"People of this project": "Personen in diesem Projekt",
	"Nobody yet.": "Noch niemand.",
	"Developers see and make the keys of the projects that they work in. Owners and admins see all.":
		"Entwickler sehen die Schlüssel der Projekte, in denen sie arbeiten, und legen dort welche an. Inhaber und Administratoren sehen alle.",
	Remove: "Entfernen",
	"Remove {name}": "{name} entfernen",
	"{name} made keys of this project that still work, and may have kept their secrets. Kept, they go on working; revoked, they are refused everywhere at once.":
		"{name} hat in diesem Projekt Schlüssel angelegt, die noch gelten, und kennt vielleicht ihre Geheimnisse. Behalten gelten sie weiter; widerrufen werden sie sofort überall abgewiesen.",
	"Keep the keys": "Schlüssel behalten",
	"Revoke the keys": "Schlüssel widerrufen",
	"Add a member of the account": "Mitglied des Kontos hinzufügen",
	"No such member": "Kein solches Mitglied",
	Add: "Hinzufügen",
	Edit: "Bearbeiten",
	Archive: "Archivieren",
	Id: "Kennung",
	"Copy the project's id": "Kennung des Projekts kopieren",
	"All available models": "Alle verfügbaren Modelle",
	Created: "Angelegt",
	"Keys of this project": "Schlüssel dieses Projekts",
	"No keys yet.": "Noch keine Schlüssel.",
	"Make one here, or move one: a key's page says which project it has.":
		"Legen Sie hier einen an oder verschieben Sie einen: Die Seite eines Schlüssels zeigt sein Projekt.",
	"Edit the project": "Projekt ändern",
	"The change applies on all instances": "Die Änderung gilt auf allen Instanzen",
	"Archive the project": "Projekt archivieren",
	"No instance accepts a key of this project": "Keine Instanz nimmt Schlüssel dieses Projekts an",
	"Every application that uses a key of {name} is refused from now on. This cannot be undone. Requests that are already admitted finish and are charged.":
		"Jede Anwendung, die einen Schlüssel von {name} benutzt, wird ab sofort abgewiesen. Das lässt sich nicht rückgängig machen. Bereits zugelassene Anfragen laufen zu Ende und werden berechnet.",
	"Type the project's name: {name}": "Geben Sie den Namen des Projekts ein: {name}",
	"Create a project": "Projekt anlegen",
	"A budget for some of the keys, and the people who work with them.":
		"Ein Budget für einen Teil der Schlüssel, und wer mit ihnen arbeitet.",
	"No projects yet.": "Noch keine Projekte.",
	"A project has a cap, models and limits that its keys share. What its keys spend counts against its cap and their own.":
		"Ein Projekt hat Obergrenze, Modelle und Grenzen, die seine Schlüssel teilen. Was sie ausgeben, zählt gegen seine Obergrenze und gegen ihre eigene.",
} as const;
