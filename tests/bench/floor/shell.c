// The floor's shim: sends its command to the host of the floor, writes what comes back and leaves with the exit code.
//
// usage: FLOOR_SOCKET=SOCKET shell -c TEXT

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MESSAGE_BYTES_MAX = 64 << 10 };

static char message[MESSAGE_BYTES_MAX];

int main(int count, char **arguments) {
    const char *socket_path = getenv("FLOOR_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (count != 3 || socket_path == NULL || strlen(socket_path) >= sizeof address.sun_path) return 2;
    strcpy(address.sun_path, socket_path);
    int host = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (connect(host, (struct sockaddr *)&address, sizeof address) != 0) return 127;
    if (send(host, arguments[2], strlen(arguments[2]), MSG_NOSIGNAL) < 0) return 126;
    for (;;) {
        ssize_t length = recv(host, message, sizeof message, 0);
        if (length < 2) return 125;
        if (message[0] == 'x') return (unsigned char)message[1];
        for (ssize_t at = 1; at < length;) {
            ssize_t written = write(1, message + at, (size_t)(length - at));
            if (written <= 0) return 124;
            at += written;
        }
    }
}
